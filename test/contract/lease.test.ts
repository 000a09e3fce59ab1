import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { RunningIssuer, issuedKey, type IssuerRole } from '../support/harness/issuer-harness.ts';

const roles: readonly IssuerRole[] = ['authority', 'agent'];

describe.each(roles)('an issuer that is an %s', (role) => {
  let issuer: RunningIssuer;
  beforeEach(async () => {
    issuer = await new RunningIssuer(role).start();
  });
  afterEach(() => issuer[Symbol.asyncDispose]());

  test('gives a device a lease', async () => {
    const device = await issuer.device();
    const taken = await device.ask('take');
    expect([taken.status, taken.problem]).toEqual([200, {}]);
    expect(taken.lease).toMatchObject({ aud: 'editor', license: { license_key: issuedKey, enabled: true } });
  });
});
