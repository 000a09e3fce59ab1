import { expect, test } from 'vitest';
import { codeOf, dataOf, startHarness } from '../support/harness/agent-harness.ts';
import { operate } from '../support/app/people.ts';

test.each([101, 1_000, 6_000])(
  'a key of %i characters that the store knows is verified and used at an agent, and one that it does not know is 404',
  async (length) => {
    const licenseKey = 'signed.'.padEnd(length, 'K');
    await using harness = await startHarness({ licenses: [licenseKey] });
    const agent = await harness.startAgent();
    const verified = await agent.verify(licenseKey);
    expect([verified.status, dataOf(verified)['license_key']]).toEqual([200, licenseKey]);
    expect(dataOf(await agent.change('usage', licenseKey))).toMatchObject({ uses: 1 });
    expect(codeOf(await agent.verify(`${licenseKey}x`))).toBe('license_not_found');
    await agent.change('usage', licenseKey);
    const shown = await operate(harness.directory, 'license', 'show', licenseKey, '--json');
    expect(JSON.parse(shown.out)).toMatchObject({ license_key: licenseKey, uses: 2 });
    // The store is away: only what is known here is answered.
    await harness.proxy.become({ kind: 'refuse' });
    expect((await agent.verify(licenseKey)).status).toBe(200);
    const unknown = await agent.verify(`other.${licenseKey}`);
    expect([unknown.status, codeOf(unknown)]).toEqual([503, 'upstream_unreachable']);
  },
);
