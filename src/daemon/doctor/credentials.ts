import type { Configuration, UpstreamSettings } from '../../config/configuration.ts';
import { fail, type Finding, ok, warn } from '../../config/fault/finding.ts';
import { type DialectName, dialectNames } from '../../domain/dialect.ts';
import { isMissing, type Outcome } from '../../domain/outbox/outcome.ts';
import type { ConnectionSettings } from '../../upstream/connections.ts';
import { plainUpstream } from '../../upstream/plain-upstream.ts';
import { systemRandom } from '../system/random.ts';
import { speechSettings } from '../upstream-settings.ts';

/** What was found; `dialect`: the one that the upstream speaks, null where that cannot be told. */
export type UpstreamSurvey = { findings: readonly Finding[]; dialect: DialectName | null };

/**
 * Asks the upstream under each credential, in every dialect, and tells which one it speaks. `saysUnknown`: whether
 * it says of a license key that it is unknown, in a dialect, also to a request without a credential.
 */
export async function examineCredentials(
  configuration: Configuration,
  upstream: UpstreamSettings,
  settings: ConnectionSettings,
  saysUnknown: (dialect: DialectName) => boolean,
): Promise<UpstreamSurvey> {
  const { products } = configuration;
  const trials = new Map<DialectName, readonly Trial[]>();
  for (const name of dialectNames)
    trials.set(name, await tryDialect(configuration, upstream, settings, name));
  // Any server that does not have the path answers 404 to all.
  const spoken = dialectNames.every(saysUnknown) ? null : spokenDialect(trials);
  const judged = spoken ?? upstream.dialect;
  const findings = [
    ...(spoken === null ? [] : [judgeDialect(spoken, upstream.dialect)]),
    ...(trials.get(judged) ?? []).map((trial) => judge(trial, saysUnknown(judged))),
    ...(products.length === 0 ? [warn('no product is configured', 'list the products under products')] : []),
    ...(upstream.apiKey === null ? [ok('no API key is configured: coupons are not served')] : []),
  ];
  return { findings, dialect: spoken };
}

/** What came of a question under one credential, in one dialect. */
type Trial = { of: 'secret' | 'api key'; name: string; outcome: Outcome<unknown> };

async function tryDialect(
  { products }: Configuration,
  upstream: UpstreamSettings,
  settings: ConnectionSettings,
  dialect: DialectName,
): Promise<Trial[]> {
  const { apiKey } = upstream;
  const secretOf = (productKey: string): string | null =>
    products.find(({ key }) => key === productKey)?.secret.reveal() ?? null;
  const speech = speechSettings(upstream, dialect);
  await using client = plainUpstream(
    { ...settings, ...speech, self: null, apiKey: () => apiKey?.reveal() ?? null, secretOf },
    { now: () => Date.now(), confirmed: () => null, elapsed: () => performance.now() },
  );
  const { signal } = new AbortController();
  const trials: Trial[] = [];
  for (const { key } of products) {
    const outcome = await client.verify(key, madeUpKey(), signal);
    trials.push({ of: 'secret', name: `the secret of product ${key}`, outcome });
  }
  if (apiKey === null) return trials;
  const coupons = await client.listCoupons({ limit: 1, offset: 0 }, signal);
  return [...trials, { of: 'api key', name: 'the API key', outcome: coupons }];
}

/**
 * That in which most credentials are accepted; null when that cannot be told. Who says "unknown" as the
 * specification has it is understood in other dialects as well, and an API key may be accepted in all.
 */
function spokenDialect(trials: ReadonlyMap<DialectName, readonly Trial[]>): DialectName | null {
  const accepted = dialectNames.map((name) => ({
    name,
    all: (trials.get(name) ?? []).filter(isAccepted),
  }));
  const most = Math.max(...accepted.map(({ all }) => all.length));
  const best = accepted.filter(({ all }) => all.length === most);
  const [first] = best.length === 1 ? best : best.filter(({ all }) => all.some(({ of }) => of === 'secret'));
  return first?.name ?? null;
}

function judgeDialect(spoken: DialectName, configured: DialectName): Finding {
  if (spoken === configured) return ok(`the upstream speaks the dialect ${spoken}, as configured`);
  return fail(
    `the upstream speaks the dialect ${spoken}, but upstream.dialect is ${configured}`,
    `set upstream.dialect: ${spoken}`,
  );
}

/** Under an accepted secret a license key that nobody has is unknown; under an accepted API key coupons are listed. */
function isAccepted({ of, outcome }: Trial): boolean {
  return of === 'secret' ? isMissing(outcome) : outcome.outcome === 'applied';
}

/** `isUnknownToAll`: also who sends no credential is told that the license key is unknown. */
function judge(trial: Trial, isUnknownToAll: boolean): Finding {
  const { of, name } = trial;
  if (!isAccepted(trial)) return explain(trial);
  if (of !== 'secret' || !isUnknownToAll) return ok(`${name} is accepted`);
  return warn(
    `${name}: the upstream answers the same without it, so it is not clear whether it is accepted`,
    'check upstream.base_url, and verify a license key that exists',
  );
}

function explain({ name, outcome }: Trial): Finding {
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
  // An agent above answers so while its own upstream is away: it says nothing of the credential.
  if (outcome.status === 503)
    return warn(what, 'try again later: the response does not show whether it is accepted');
  return fail(what, 'check upstream.base_url; the log of the daemon may say more');
}

/** A license key that nobody can have. */
export function madeUpKey(): string {
  return `LATCHKEY-DOCTOR-${Buffer.from(systemRandom.bytes(8)).toString('hex')}`;
}
