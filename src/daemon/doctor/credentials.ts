import type { Configuration, UpstreamSettings } from '../../config/configuration.ts';
import { fail, type Finding, ok, warn } from '../../config/finding.ts';
import { type DialectName, dialectNames } from '../../domain/dialect.ts';
import { isMissing, type Outcome } from '../../domain/outbox/outcome.ts';
import type { ConnectionSettings } from '../../upstream/connections.ts';
import { plainUpstream } from '../../upstream/plain-upstream.ts';
import { systemRandom } from '../system/random.ts';
import { speechSettings } from '../upstream-settings.ts';

/** The findings, and the dialect of the upstream; null if the dialect is unknown. */
export type UpstreamSurvey = { findings: readonly Finding[]; dialect: DialectName | null };

/**
 * Tries each credential in every dialect, and finds the dialect of the upstream. `saysUnknown`: whether the upstream
 * answers, in a dialect, that a license key is unknown even to a request without a credential.
 */
export async function examineCredentials(
  configuration: Configuration,
  upstream: UpstreamSettings,
  settings: ConnectionSettings,
  saysUnknown: (dialect: DialectName) => boolean,
): Promise<UpstreamSurvey> {
  const { products } = configuration;
  const checks = new Map<DialectName, readonly CredentialCheck[]>();
  for (const name of dialectNames)
    checks.set(name, await tryDialect(configuration, upstream, settings, name));
  // A server without this path answers 404 to every request.
  const spoken = dialectNames.every(saysUnknown) ? null : spokenDialect(checks);
  const dialect = spoken ?? upstream.dialect;
  const findings = [
    ...(spoken === null ? [] : [compareDialects(spoken, upstream.dialect)]),
    ...(checks.get(dialect) ?? []).map((check) => findingOf(check, saysUnknown(dialect))),
    ...(products.length === 0 ? [warn('no product is configured', 'list the products under products')] : []),
    ...(upstream.apiKey === null ? [ok('no API key is configured: coupons are not served')] : []),
  ];
  return { findings, dialect: spoken };
}

/** The result of a request with one credential in one dialect. */
type CredentialCheck = { of: 'secret' | 'api key'; name: string; outcome: Outcome<unknown> };

async function tryDialect(
  { products }: Configuration,
  upstream: UpstreamSettings,
  settings: ConnectionSettings,
  dialect: DialectName,
): Promise<CredentialCheck[]> {
  const { apiKey } = upstream;
  const secretOf = (productKey: string): string | null =>
    products.find(({ key }) => key === productKey)?.secret.reveal() ?? null;
  const speech = speechSettings(upstream, dialect);
  await using client = plainUpstream(
    { ...settings, ...speech, self: null, apiKey: () => apiKey?.reveal() ?? null, secretOf },
    { now: () => Date.now(), confirmed: () => null, elapsed: () => performance.now() },
  );
  const { signal } = new AbortController();
  const checks: CredentialCheck[] = [];
  for (const { key } of products) {
    const outcome = await client.verify(key, madeUpKey(), signal);
    checks.push({ of: 'secret', name: `the secret of product ${key}`, outcome });
  }
  if (apiKey === null) return checks;
  const coupons = await client.listCoupons({ limit: 1, offset: 0 }, signal);
  return [...checks, { of: 'api key', name: 'the API key', outcome: coupons }];
}

/**
 * The dialect in which most credentials are accepted; null if that is not unique. Other dialects understand "unknown" of
 * the specification as well, and an API key may be accepted in all dialects.
 */
function spokenDialect(checks: ReadonlyMap<DialectName, readonly CredentialCheck[]>): DialectName | null {
  const accepted = dialectNames.map((name) => ({
    name,
    all: (checks.get(name) ?? []).filter(isAccepted),
  }));
  const most = Math.max(...accepted.map(({ all }) => all.length));
  const best = accepted.filter(({ all }) => all.length === most);
  const [first] = best.length === 1 ? best : best.filter(({ all }) => all.some(({ of }) => of === 'secret'));
  return first?.name ?? null;
}

function compareDialects(spoken: DialectName, configured: DialectName): Finding {
  if (spoken === configured) return ok(`the upstream speaks the dialect ${spoken}, as configured`);
  return fail(
    `the upstream speaks the dialect ${spoken}, but upstream.dialect is ${configured}`,
    `set upstream.dialect: ${spoken}`,
  );
}

/** An accepted secret finds a made-up license key unknown. An accepted API key lists coupons. */
function isAccepted({ of, outcome }: CredentialCheck): boolean {
  return of === 'secret' ? isMissing(outcome) : outcome.outcome === 'applied';
}

/** `isUnknownToAll`: a request without a credential also gets the answer that the license key is unknown. */
function findingOf(check: CredentialCheck, isUnknownToAll: boolean): Finding {
  const { of, name } = check;
  if (!isAccepted(check)) return explain(check);
  if (of !== 'secret' || !isUnknownToAll) return ok(`${name} is accepted`);
  return warn(
    `${name}: the upstream answers the same without it, so it is not clear whether it is accepted`,
    'check upstream.base_url, and verify a license key that exists',
  );
}

function explain({ name, outcome }: CredentialCheck): Finding {
  if (outcome.outcome === 'applied') {
    return fail(
      `${name}: the upstream knows a made-up license key that nobody issued`,
      'check upstream.base_url',
    );
  }
  const what = `${name}: ${outcome.detail}`;
  const reason = outcome.outcome === 'not_applied' ? outcome.reason : null;
  if (reason === 'unauthorized') return fail(what, 'check the secret in the configuration, and reload');
  if (reason === 'throttled') return warn(what, 'try again later');
  // An upstream agent answers 503 while its own upstream is unavailable, whatever the credential.
  if (outcome.status === 503)
    return warn(what, 'try again later: the response does not show whether it is accepted');
  return fail(what, 'check upstream.base_url; the log of the daemon may say more');
}

/** A license key that does not exist. */
export function madeUpKey(): string {
  return `LATCHKEY-DOCTOR-${Buffer.from(systemRandom.bytes(8)).toString('hex')}`;
}
