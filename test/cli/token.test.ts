import { expect, test } from 'vitest';
import { latchkey } from '../support/process/command-line.ts';
import { problem, startFakeDaemon } from '../support/process/fake-daemon.ts';

const token = {
  token_id: 't1',
  scopes: ['verify', 'use'],
  product_key: 'RGsF',
  account_id: 'default',
  label: 'till',
  created_at: '2026-01-01T00:00:00+00:00',
  last_used_at: null,
  expires_at: '2026-04-01T00:00:00+00:00',
};

test('token issue sends the options and shows the token', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 201, body: { data: { ...token, token: 'lk_tok_x' } } });
  const argv = ['token', 'issue', '--scope', 'verify, use', '--product', 'RGsF', '--label', 'till'];
  const account = ['--account', 'default'];
  const { code, out } = await latchkey(...argv, ...account, '--state-dir', daemon.stateDir);
  expect(code).toBe(0);
  expect(out).toBe(
    [
      'token    lk_tok_x',
      'id       t1',
      'scopes   verify,use',
      'product  RGsF',
      'account  default',
      'label    till',
      'created  2026-01-01T00:00:00+00:00 (59 days ago)',
      'expires  2026-04-01T00:00:00+00:00 (in 31 days)',
      '',
      'The token is shown only this once.',
      '',
    ].join('\n'),
  );
  expect(daemon.received[0]?.line).toBe('POST /admin/v1/tokens');
  expect(JSON.parse(daemon.received[0]?.body ?? '')).toEqual({
    scopes: ['verify', 'use'],
    product_key: 'RGsF',
    account_id: 'default',
    label: 'till',
  });
});

test('token issue prints the errors of the daemon', async () => {
  await using daemon = await startFakeDaemon();
  const errors = [{ parameter: 'scopes', code: 'not_one_of', detail: 'scopes must hold only verify.' }];
  daemon.answer(problem(422, 'parameters_invalid', { detail: 'Not valid: scopes.', errors }));
  const { code, err } = await latchkey('token', 'issue', '--scope', 'all', '--state-dir', daemon.stateDir);
  expect(code).toBe(1);
  expect(err).toContain('scopes must hold only verify.');
});

test('token issue --expires 90d ends the token in 90 days', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ status: 201, body: { data: { ...token, token: 'lk_tok_x' } } });
  await latchkey('token', 'issue', '--scope', 'ops', '--expires', '90d', '--state-dir', daemon.stateDir);
  const sent = JSON.parse(daemon.received[0]?.body ?? '') as { expires_at: string };
  expect(Math.round((Date.parse(sent.expires_at) - Date.now()) / 86_400_000)).toBe(90);
});

test('token issue without a scope is a usage error', async () => {
  expect((await latchkey('token', 'issue')).code).toBe(2);
});

test('token list is a table without secrets', async () => {
  await using daemon = await startFakeDaemon();
  const file = {
    token_id: 'admin.token',
    scopes: ['admin'],
    product_key: null,
    account_id: null,
    label: null,
    created_at: token.created_at,
    last_used_at: '2026-01-02T03:00:00+00:00',
    expires_at: null,
  };
  daemon.answer({ body: { data: { tokens: [token, file] } } });
  const { out } = await latchkey('token', 'list', '--state-dir', daemon.stateDir);
  expect(out).toBe(
    [
      'ID           SCOPES      PRODUCT  ACCOUNT  LABEL  CREATED                    LAST USED                  EXPIRES',
      't1           verify,use  RGsF     default  till   2026-01-01T00:00:00+00:00  -                          2026-04-01T00:00:00+00:00',
      'admin.token  admin       -        -        -      2026-01-01T00:00:00+00:00  2026-01-02T03:00:00+00:00  -',
      '',
    ].join('\n'),
  );
});

test('token revoke prints the revoked token', async () => {
  await using daemon = await startFakeDaemon();
  daemon.answer({ body: { data: token } });
  const { code, out } = await latchkey('token', 'revoke', 'a/b', '--state-dir', daemon.stateDir);
  expect(code).toBe(0);
  expect(out).toMatch(/^revoked\n\nid +t1\n/);
  expect(daemon.received[0]?.line).toBe('DELETE /admin/v1/tokens/a%2Fb');
});
