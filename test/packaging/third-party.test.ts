import { join } from 'node:path';
import { expect, test } from 'vitest';
import { nodeNotice, thirdPartyNotices } from '../../src/packaging/third-party.ts';
import { temporaryDirectory } from '../support/temporary.ts';

test('If the license of Node.js is missing, the error names the command that restores it.', async () => {
  await using root = temporaryDirectory();
  expect(() => nodeNotice(root.path)).toThrow(/holds the license of Node\.js: npm ci brings it/);
});

test('The notices list each bundled package once, with its license, and Swagger UI.', () => {
  const root = join(import.meta.dirname, '../..');
  const installed = join(root, 'node_modules');
  const modules = ['pino/lib/levels.js', 'pino/pino.js', '@peculiar/x509/build/x509.es.js'];
  const own = join(root, 'src/cli/main.ts');
  const notices = thirdPartyNotices(root, [own, ...modules.map((path) => join(installed, path))]);
  const titles = notices.match(/^--- .*/gm)?.map((title) => title.replace(/ [\d.]+ /, ' '));
  expect(titles).toEqual([
    '--- @fastify/swagger-ui (MIT)',
    '--- @peculiar/x509 (MIT)',
    '--- pino (MIT)',
    '--- Swagger UI, within @fastify/swagger-ui (Apache-2.0: see the license of reflect-metadata above)',
  ]);
  expect(notices).toContain('Permission is hereby granted, free of charge');
});
