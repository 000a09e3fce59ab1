import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const main = fileURLToPath(new URL('main.ts', import.meta.url));

test.each([
  [['--nonsense'], "Unknown option '--nonsense'"],
  [['stray'], "Unexpected argument 'stray'"],
  [['--seeds'], "Option '--seeds <value>' argument missing"],
  [['--seeds', 'many'], 'many is not a number'],
  [['--fleet', '0'], '0 is not a number'],
  [['--troubles', 'rain'], 'there is no trouble rain'],
  [['--latchkey', '--troubles', 'rain'], 'there is no trouble rain'],
  [['--store', 'toString'], 'there is no store toString'],
  [['--sabotage', 'toString'], 'there is no sabotage toString'],
])('npm run simulate -- %j ends with one clear error', (argv, message) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [main, ...argv], {
    encoding: 'utf8',
    timeout: 20_000,
  });
  expect([status, stdout]).toEqual([2, '']);
  expect(stderr).toContain(`simulate: ${message}`);
  expect(stderr).not.toContain('    at ');
});
