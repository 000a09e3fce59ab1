import { expect, test } from 'vitest';
import { nodeNotice } from '../../src/packaging/third-party.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('where npm has taken the license of Node.js away again, what brings it back is told', async () => {
  await using root = temporaryDirectory();
  expect(() => nodeNotice(root.path)).toThrow(/holds the license of Node\.js: npm ci brings it/);
});
