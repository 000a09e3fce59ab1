import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test, vi } from 'vitest';
import { temporaryDirectory } from '../support/temporary.ts';

const program = fileURLToPath(new URL('../../src/cli/main.ts', import.meta.url));

/** A sandbox as a person starts it, once it has printed its credentials. */
async function startSandbox(home: string, ...options: string[]) {
  const child = spawn(process.execPath, [program, 'sandbox', ...options], {
    env: { PATH: process.env['PATH'], HOME: home, TMPDIR: home },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const ended = once(child, 'close') as Promise<[number | null]>;
  await vi.waitFor(() => expect(text).toContain('Put an agent in front of it'), { timeout: 20_000 });
  const told = (what: string): string => new RegExp(`${what} +(\\S+)`).exec(text)?.[1] ?? '';
  const verify = (key = told('license key')): Promise<Response> =>
    fetch(`${told('address')}/api/v2/license/verify?license_key=${key}`, {
      headers: { 'product-secret-key': told('product secret') },
    });
  return {
    verify,
    state: told('state'),
    says: () => text,
    end: async () => {
      child.kill('SIGTERM');
      const [code] = await ended;
      return code;
    },
    [Symbol.asyncDispose]: async () => {
      child.kill('SIGKILL');
      await ended;
    },
  };
}

test('a sandbox answers with the credentials it printed, goes away when told to, and removes its data', async () => {
  await using home = temporaryDirectory();
  await using sandbox = await startSandbox(home.path, '--offline-after', '2s');
  expect((await sandbox.verify()).status).toBe(200);
  await vi.waitFor(() => expect(sandbox.says()).toContain('offline now'), { timeout: 20_000 });
  await expect(sandbox.verify()).rejects.toThrow('fetch failed');
  expect(await sandbox.end()).toBe(0);
  expect(existsSync(sandbox.state)).toBe(false);
});

test('a sandbox can refuse, or leave unanswered, whatever it is asked', async () => {
  await using home = temporaryDirectory();
  await using refusing = await startSandbox(home.path, '--error-rate', '1');
  expect((await refusing.verify()).status).toBe(503);
  await using silent = await startSandbox(home.path, '--lost-replies', '1');
  await expect(silent.verify()).rejects.toThrow('fetch failed');
});

test('a sandbox of the store answers as the store does, and says how an agent is put in front of it', async () => {
  await using home = temporaryDirectory();
  await using sandbox = await startSandbox(home.path, '--dialect', 'payhip');
  expect(await (await sandbox.verify()).json()).toMatchObject({ data: { product_name: 'Sample product' } });
  const unknown = await sandbox.verify('NONE');
  expect([unknown.status, await unknown.json()]).toMatchObject([400, { data: [], error: true }]);
  expect(sandbox.says()).toContain('dialect: payhip');
});
