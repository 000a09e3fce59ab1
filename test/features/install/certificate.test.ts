import { X509Certificate } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { latchkey } from '../../support/process/command-line.ts';
import { temporaryDirectory } from '../../support/temporary.ts';

const dayMs = 86_400_000;

function make(out: string, ...argv: string[]) {
  return latchkey('certificate', 'make', '--out', out, ...argv);
}

test('certificate make writes a certificate that lasts the given days and started an hour ago', async () => {
  await using directory = temporaryDirectory();
  const out = join(directory.path, 'tls');
  for (const [days, options] of [
    [825, []],
    [1, ['--days', '1']],
  ] as const) {
    const at = `${out}-${days}`;
    const made = await make(at, '--host', 'api.example.com, 127.0.0.1', '--json', ...options);
    const told = JSON.parse(made.out) as { not_after: string; hosts: string[] };
    const { validFromDate, validToDate } = new X509Certificate(readFileSync(join(at, 'cert.pem')));
    expect(validToDate.getTime() - validFromDate.getTime()).toBe(days * dayMs);
    expect(Math.round((Date.now() - validFromDate.getTime()) / 60_000)).toBe(60);
    expect(told.hosts).toEqual(['api.example.com', '127.0.0.1']);
    expect(Math.floor(Date.parse(told.not_after) / 1000) * 1000).toBe(validToDate.getTime());
  }
});

test.each(['0', '826', '1.5', 'many'])('--days %s is misuse, and nothing is written', async (days) => {
  await using directory = temporaryDirectory();
  const out = join(directory.path, 'tls');
  const { code, err } = await make(out, '--host', 'localhost', '--days', days);
  expect([code, err]).toEqual([2, expect.stringContaining('--days must be a')]);
  expect(existsSync(out)).toBe(false);
});

test('certificate make prints settings that can be pasted into the configuration', async () => {
  await using directory = temporaryDirectory();
  const { out } = await make(directory.path, '--host', 'api.example.com,127.0.0.1');
  const [cert, key] = ['cert.pem', 'key.pem'].map((name) => join(directory.path, name));
  expect(out).toContain(
    [
      '  listen:',
      `    tls: { cert_file: ${cert}, key_file: ${key} }`,
      '    allowed_hosts: [api.example.com, 127.0.0.1]',
      '',
    ].join('\n'),
  );
});

test('certificate make supports host names that are too long for a common name', async () => {
  await using directory = temporaryDirectory();
  const host = `${'a'.repeat(40)}.${'b'.repeat(40)}.example.com`;
  expect(await make(directory.path, '--host', host)).toMatchObject({ code: 0 });
  const made = new X509Certificate(readFileSync(join(directory.path, 'cert.pem')));
  expect(made.checkHost(host)).toBe(host);
  // X.520 allows no more.
  for (const name of [made.subject, made.issuer]) expect(name.replace('CN=', '')).toHaveLength(64);
});
