import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '../..');

test('package.json says who made the package, where it comes from and what it is about', () => {
  const facts = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as Record<string, unknown>;
  expect(facts).toMatchObject({
    author: 'The Latchkey authors',
    homepage: expect.stringMatching(/^https:/),
    bugs: expect.stringMatching(/^https:/),
    repository: { type: 'git', url: expect.stringMatching(/^git\+https:/) },
  });
  expect(facts['keywords']).toContain('license');
  expect(readFileSync(join(root, 'LICENSE'), 'utf8')).toContain(String(facts['author']));
});

test('npm publish is refused as long as package.json has addresses that cannot exist', () => {
  const argv = ['run', '--silent', 'prepublishOnly'];
  const { status, stderr } = spawnSync('npm', argv, { cwd: root, encoding: 'utf8' });
  expect([status, stderr]).toEqual([
    1,
    'package.json: homepage, bugs, repository: write the real address before the package is published\n',
  ]);
});
