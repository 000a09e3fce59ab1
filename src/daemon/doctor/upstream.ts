import { lookup } from 'node:dns/promises';
import { isIP } from 'node:net';
import { formatReason } from '../../config/errors.ts';
import { readCertificates } from '../../config/file/certificates.ts';
import { readNamedFile } from '../../config/file/named-file.ts';
import type { Configuration, UpstreamSettings } from '../../config/configuration.ts';
import { foreignStores } from '../../config/foreign-stores.ts';
import { formatDestination, isPlainToOthers, hostOf } from '../../config/value/address.ts';
import { formatDatetime, minuteMs } from '../../domain/time.ts';
import { isResponse, isMissing, type Outcome } from '../../domain/outbox/outcome.ts';
import { certificateFaultOf, type CertificateFault } from '../../domain/connection-failure.ts';
import { classify, isOwnResponse, sentAtOf } from '../../upstream/classification.ts';
import type { ConnectionSettings } from '../../upstream/connections.ts';
import { loadStore } from '../../stores/store.ts';
import type { Dialect } from '../../upstream/dialects.ts';
import { type Exchange, networkTransport } from '../../upstream/exchange.ts';
import { clockAdvice, describeClock } from '../../domain/clock.ts';
import { counted } from '../../domain/text.ts';
import { formatProxy, ignoredExceptions, type ProxyChoice } from '../../upstream/proxy.ts';
import { fail, ok, warn, type Finding } from '../../domain/finding.ts';
import { endOf } from '../certificate.ts';
import { connectionSettings, proxyTo, speechSettings } from '../upstream-settings.ts';
import { type DialectName, dialectNames, type ForeignStoreName } from '../../domain/header-names.ts';
import { upstreamClient } from '../../upstream/client.ts';
import { systemRandom } from '../system/machine.ts';

/** From this difference on, one of the clocks is wrong, in ms. From `noticeableMs` on, the doctor mentions it. */
const suspectMs = 10 * minuteMs;
const noticeableMs = 30_000;

/**
 * Examines the connection to the upstream step by step, and the API there. Changes nothing. `self`: the instance id of
 * the agent, which recognizes its own responses; null: unknown.
 */
export async function examineUpstream(
  configuration: Configuration,
  self: string | null,
): Promise<UpstreamSurvey> {
  const { upstream } = configuration;
  if (upstream === null) return { findings: [], dialect: null };
  const { pem, isUsable, findings } = examineCaFile(upstream);
  const connectionFindings = [...findings, ...examineEncryption(upstream), ...(await examineName(upstream))];
  if (!isUsable) return { findings: connectionFindings, dialect: null };
  const settings = connectionSettings(upstream, configuration.listen, {
    ca: pem,
    maxConnections: () => 1,
  });
  const { store } = upstream;
  if (store !== null)
    return {
      findings: [
        ...connectionFindings,
        ...(await examineStore(configuration, upstream, { store, settings })),
      ],
      dialect: null,
    };
  const dialects = await allDialects();
  const speech = speechSettings(upstream, upstream.dialect, dialects[upstream.dialect]);
  const exchange = await requestWithoutCredential(settings, speech.userAgent);
  const response = examineResponse(exchange, { upstream, dialects, self });
  if (response.level === 'fail') return { findings: [...connectionFindings, response], dialect: null };
  const { findings: accepted, dialect } = await examineCredentials(configuration, upstream, {
    settings,
    dialects,
    saysUnknown: (name) => isMissing(readUncredited(exchange, dialects[name])),
  });
  return { findings: [...connectionFindings, response, ...examineClock(exchange), ...accepted], dialect };
}

type Dialects = Readonly<Record<DialectName, Dialect>>;

async function allDialects(): Promise<Dialects> {
  const [specification, payhip] = await Promise.all([loadStore('specification'), loadStore('payhip')]);
  return { specification: specification.received, payhip: payhip.received };
}

/** Whether a store with an API of its own answers that it does not know a license key that was made up. */
async function examineStore(
  { products }: Configuration,
  upstream: UpstreamSettings,
  { store: name, settings }: { store: ForeignStoreName; settings: ConnectionSettings },
): Promise<readonly Finding[]> {
  const loaded = await loadStore(name);
  const connecting = {
    ...settings,
    ...speechSettings(upstream, upstream.dialect, loaded.received),
    self: null,
    productKeyOf: (productKey: string) => productKey,
    accessToken: () => null,
  };
  await using client = loaded.connect?.(networkTransport(settings), connecting, doctorClock);
  if (client === undefined) return [];
  const { signal } = new AbortController();
  const checks: CredentialCheck[] = [];
  for (const { key } of products)
    checks.push({
      of: 'secret',
      name: `the product ${key}`,
      outcome: await client.verify(key, madeUpKey(), signal),
    });
  const noToken = ok(`no access token is configured: ${foreignStores[name].withoutToken}`);
  return [
    ...checks.map((check) => (isAccepted(check) ? ok(`${name} answers for ${check.name}`) : explain(check))),
    ...(products.length === 0 ? [warn('no product is configured', 'list the products under products')] : []),
    ...(upstream.accessToken === null ? [noToken] : []),
  ];
}

const doctorClock = { now: () => Date.now(), confirmed: () => null, monotonic: () => performance.now() };

type CaFile = { pem: string | null; isUsable: boolean; findings: readonly Finding[] };

function examineCaFile({ caFile }: UpstreamSettings): CaFile {
  if (caFile === null) return { pem: null, isUsable: true, findings: [] };
  const advice = 'upstream.ca_file must hold the PEM certificate of the authority that signed the upstream’s';
  const read = readCertificates(caFile, readNamedFile);
  if (!read.ok) return { pem: null, isUsable: false, findings: [fail(read.text, advice)] };
  const ends = read.certificates.map(endOf);
  const valid = ends.filter((end) => end > Date.now());
  const expired = ends.length - valid.length;
  const what = ends.length === 1 ? 'is a certificate' : `holds ${counted(ends.length, 'certificate')}`;
  const findings =
    valid.length === 0
      ? [fail(`${caFile} expired on ${formatDatetime(Math.max(...ends))}`, advice)]
      : [
          ok(`${caFile} ${what}, valid until ${formatDatetime(Math.min(...valid))}`),
          ...(expired === 0
            ? []
            : [warn(`${caFile} holds ${counted(expired, 'expired certificate')}`, 'remove what expired')]),
        ];
  return { pem: read.pem, isUsable: true, findings };
}

function examineEncryption({ baseUrl }: UpstreamSettings): Finding[] {
  if (!isPlainToOthers(new URL(baseUrl))) return [];
  const advice = 'use https: anyone on the network path can read the secrets';
  return [warn(`${baseUrl} is plain http to another machine`, advice)];
}

/** `connect_to` needs no name. */
async function examineName(upstream: UpstreamSettings): Promise<readonly Finding[]> {
  const { baseUrl, connectTo } = upstream;
  if (connectTo !== null) {
    return [ok(`connections to the upstream go to ${formatDestination(connectTo)} (upstream.connect_to)`)];
  }
  return await examineHostName('the upstream', baseUrl, proxyTo(upstream));
}

async function requestWithoutCredential(settings: ConnectionSettings, userAgent: string): Promise<Exchange> {
  await using transport = networkTransport(settings);
  const { origin, pathname } = new URL(settings.baseUrl);
  const path = `${pathname.replace(/\/$/, '')}/api/v2/license/verify?license_key=${madeUpKey()}`;
  const headers = { accept: 'application/json', 'accept-encoding': 'identity', 'user-agent': userAgent };
  const { signal } = new AbortController();
  const { exchange } = await transport.send({ origin, method: 'GET', path, headers }, signal);
  return exchange;
}

/** Whether the API answers: it refuses a request without a credential, in one of the dialects. */
function examineResponse(
  exchange: Exchange,
  { upstream, dialects, self }: { upstream: UpstreamSettings; dialects: Dialects; self: string | null },
): Finding {
  const { baseUrl, dialect } = upstream;
  if (exchange.type === 'answered' && isOwnResponse(self, exchange)) {
    const advice = 'set upstream.connect_to to the address of the store';
    return fail(`${baseUrl} leads to this agent itself`, advice);
  }
  if (exchange.type === 'answered' && exchange.status >= 500) {
    return fail(`the store at ${baseUrl} itself fails: HTTP ${exchange.status}`, waitForStore);
  }
  const outcomes = Object.values(dialects).map((each) => readUncredited(exchange, each));
  if (outcomes.every(isMissing)) {
    const what = `the server at ${baseUrl} says 404 to a request without a credential: is it the API?`;
    return warn(what, 'check upstream.base_url');
  }
  if (outcomes.some(isResponse)) return ok(`the API answers at ${baseUrl}`);
  const outcome = readUncredited(exchange, dialects[dialect]);
  const detail = outcome.outcome === 'applied' ? '' : outcome.detail;
  if (exchange.type === 'answered') {
    return fail(
      `the server at ${baseUrl} is not the API: ${detail}`,
      'check upstream.base_url; if a firewall is in between, ask its administrator to let this machine through',
    );
  }
  return fail(`${baseUrl} cannot be reached: ${detail}`, reachAdvice(exchange.error));
}

const waitForStore = 'nothing to do here: changes wait until the store works again';

/** The outcome of a request without a credential in a dialect; never `applied`. */
function readUncredited(exchange: Exchange, dialect: Dialect): Outcome<never> {
  const read = (): { fault: string } => ({ fault: 'a request without a credential is accepted' });
  const now = Date.now();
  return classify(exchange, {
    read,
    request: 'verify',
    dialect,
    self: null,
    hidden: [],
    now,
    confirmed: now,
  });
}

const certificateAdvice: Readonly<Record<CertificateFault, string>> = {
  expired: 'the operator of the upstream must renew it, unless the clock of this machine is wrong',
  untrusted: 'set upstream.ca_file to the certificate of the authority that signed the upstream’s',
  foreign: 'another server answers there: check upstream.base_url and upstream.connect_to',
};

function reachAdvice(error: Error): string {
  const fault = certificateFaultOf(error);
  if (fault !== null) return certificateAdvice[fault];
  return 'check upstream.base_url, upstream.proxy, and the firewall of this machine';
}

function examineClock(exchange: Exchange): Finding[] {
  const sentAt = exchange.type === 'answered' ? sentAtOf(exchange) : null;
  if (sentAt === null)
    return [warn('the upstream sends no Date header', 'check the clock of this machine yourself')];
  const aheadMs = Date.now() - sentAt;
  if (Math.abs(aheadMs) < noticeableMs) return [ok('the clock agrees with that of the upstream')];
  if (Math.abs(aheadMs) > suspectMs) return [fail(describeClock(aheadMs), clockAdvice)];
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  const what = `the clock is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} that of the upstream`;
  return [warn(what, 'synchronize the clock by NTP, for instance: timedatectl set-ntp true')];
}

/** The findings, and the dialect of the upstream; null if the dialect is unknown. */
type UpstreamSurvey = { findings: readonly Finding[]; dialect: DialectName | null };

/**
 * Tries each credential in every dialect, and finds the dialect of the upstream. `saysUnknown`: whether the upstream
 * answers, in a dialect, that a license key is unknown even to a request without a credential.
 */
async function examineCredentials(
  configuration: Configuration,
  upstream: UpstreamSettings,
  { saysUnknown, ...trying }: Trying & { saysUnknown: (dialect: DialectName) => boolean },
): Promise<UpstreamSurvey> {
  const { products } = configuration;
  const checks = new Map<DialectName, readonly CredentialCheck[]>();
  for (const name of dialectNames) checks.set(name, await tryDialect(configuration, upstream, trying, name));
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

type Trying = { settings: ConnectionSettings; dialects: Dialects };

/** The result of a request with one credential in one dialect. */
type CredentialCheck = { of: 'secret' | 'api key'; name: string; outcome: Outcome<unknown> };

async function tryDialect(
  { products }: Configuration,
  upstream: UpstreamSettings,
  { settings, dialects }: Trying,
  dialect: DialectName,
): Promise<CredentialCheck[]> {
  const { apiKey } = upstream;
  const secretOf = (productKey: string): string | null =>
    products.find(({ key }) => key === productKey)?.secret?.reveal() ?? null;
  const speech = speechSettings(upstream, dialect, dialects[dialect]);
  await using client = upstreamClient(
    { ...settings, ...speech, self: null, apiKey: () => apiKey?.reveal() ?? null, secretOf },
    doctorClock,
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
  const maxAccepted = Math.max(...accepted.map(({ all }) => all.length));
  const best = accepted.filter(({ all }) => all.length === maxAccepted);
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
    return fail(`${name}: the upstream knows a license key that was made up`, 'check upstream.base_url');
  }
  const what = `${name}: ${outcome.detail}`;
  const reason = outcome.outcome === 'not_applied' ? outcome.reason : null;
  if (reason === 'unauthorized') return fail(what, 'check the secret in the configuration, and reload');
  if (reason === 'throttled') return warn(what, 'try again later');
  // An upstream agent answers 503 while its own upstream is unavailable, whatever the credential.
  if (outcome.status === 503)
    return warn(what, 'try again later: the response does not show whether it is accepted');
  if (outcome.status !== null && outcome.status >= 500)
    return fail(`${name} cannot be checked: the store itself fails: ${outcome.detail}`, waitForStore);
  return fail(what, 'check upstream.base_url; the log of the daemon may say more');
}

/** A license key that does not exist. */
function madeUpKey(): string {
  return `LATCHKEY-DOCTOR-${Buffer.from(systemRandom.bytes(8)).toString('hex')}`;
}

/** Examines whether the name of a server resolves. A proxy resolves the name itself: then the name of the proxy is examined. */
export async function examineHostName(
  server: 'the upstream' | 'the issuer',
  url: string,
  choice: ProxyChoice | null,
): Promise<readonly Finding[]> {
  // If the URL of the proxy is invalid, the request says so.
  const via = choice === null ? null : formatProxy(choice);
  const notice =
    choice === null || via === null
      ? []
      : [ok(`connections to ${server} go through the proxy ${via} (${choice.source})`)];
  const ignored = choice === null ? null : ignoredExceptions(process.env);
  if (ignored !== null) {
    const what = `${ignored.source} has entries that match no host: ${ignored.entries.join(', ')}`;
    notice.push(warn(what, 'write names, *.name, IP addresses or ranges such as 10.0.0.0/8'));
  }
  const host = hostOf(new URL(via ?? url));
  if (isIP(host) !== 0) return notice;
  const name = `${host}, the name of ${via === null ? server : 'the proxy'},`;
  try {
    const { address } = await lookup(host);
    return [...notice, ok(`${name} resolves to ${address}`)];
  } catch (error) {
    const advice = 'check the name, and the name servers of this machine (/etc/resolv.conf)';
    return [...notice, fail(`${name} does not resolve: ${formatReason(error)}`, advice)];
  }
}
