import { X509Certificate } from 'node:crypto';
import { lookup } from 'node:dns/promises';
import { readFileSync } from 'node:fs';
import { isIP } from 'node:net';
import type { Configuration, UpstreamSettings } from '../../config/configuration.ts';
import { formatReason } from '../../config/fault.ts';
import type { Outcome } from '../../domain/outcome.ts';
import { classify, sentAtOf } from '../../upstream/classification.ts';
import { Connections, type ConnectionSettings } from '../../upstream/connections.ts';
import { exchange, type Exchange } from '../../upstream/exchange.ts';
import { plainUpstream } from '../../upstream/plain-upstream.ts';
import { fail, ok, warn, type Finding } from '../../config/finding.ts';
import { isPlainToOthers } from '../../config/warning.ts';
import { systemRandom } from '../system/random.ts';

/** Beyond this the clock is called suspect, in ms; from `noticeableMs` on it is worth a word. */
const suspectMs = 10 * 60_000;
const noticeableMs = 30_000;

/** Looks at the way to the upstream, step by step, and at what answers there; nothing is changed there. */
export async function examineUpstream(configuration: Configuration): Promise<Finding[]> {
  const { upstream } = configuration;
  if (upstream === null) return [];
  const { pem, areUsable, findings } = readCertificates(upstream);
  const way = [...findings, ...examineEncryption(upstream), ...(await examineName(upstream))];
  if (!areUsable) return way;
  const settings = connectionSettings(upstream, pem);
  const came = await askWithoutCredential(settings);
  const answer = examineAnswer(came, upstream);
  if (answer.level === 'fail') return [...way, answer];
  return [...way, answer, ...examineClock(came), ...(await examineCredentials(configuration, settings))];
}

function connectionSettings(
  { baseUrl, timeoutMs, proxy }: UpstreamSettings,
  ca: string | null,
): ConnectionSettings {
  return { baseUrl, timeoutMs, ca, proxy: proxy?.reveal() ?? null, maxConnections: 1 };
}

type Certificates = { pem: string | null; areUsable: boolean; findings: readonly Finding[] };

function readCertificates({ caFile }: UpstreamSettings): Certificates {
  if (caFile === null) return { pem: null, areUsable: true, findings: [] };
  const advice = 'upstream.ca_file must hold the PEM certificate of the authority that signed the upstream’s';
  try {
    const pem = readFileSync(caFile, 'utf8');
    const { validTo, validToDate } = new X509Certificate(pem);
    const hasEnded = validToDate.getTime() < Date.now();
    const finding = hasEnded
      ? fail(`${caFile} has ended on ${validTo}`, advice)
      : ok(`${caFile} is a certificate, until ${validTo}`);
    return { pem, areUsable: true, findings: [finding] };
  } catch (error) {
    const finding = fail(`${caFile} is no certificate: ${formatReason(error)}`, advice);
    return { pem: null, areUsable: false, findings: [finding] };
  }
}

function examineEncryption({ baseUrl }: UpstreamSettings): Finding[] {
  if (!isPlainToOthers(baseUrl)) return [];
  const advice = 'use https: whoever is on the way can read the secrets';
  return [warn(`${baseUrl} is plain http to another machine`, advice)];
}

/** A proxy looks up the name itself, so that this machine need not be able to. */
async function examineName({ baseUrl, proxy }: UpstreamSettings): Promise<Finding[]> {
  const proxied = proxy === null ? proxyOfEnvironment(baseUrl) : new URL(proxy.reveal());
  const { hostname } = proxied ?? new URL(baseUrl);
  const of = proxied === null ? 'the upstream' : 'the proxy';
  const notice = proxied === null ? [] : [ok(`the way to the upstream leads over the proxy ${proxied.host}`)];
  const host = hostname.replace(/^\[|\]$/g, '');
  if (isIP(host) !== 0) return notice;
  try {
    const { address } = await lookup(host);
    return [...notice, ok(`${host}, the name of ${of}, leads to ${address}`)];
  } catch (error) {
    const advice = `check the name, and the name servers of this machine (/etc/resolv.conf)`;
    return [...notice, fail(`${host}, the name of ${of}, leads nowhere: ${formatReason(error)}`, advice)];
  }
}

/** As far as it can be told from here: exceptions of NO_PROXY other than by the exact name are not looked at. */
function proxyOfEnvironment(baseUrl: string): URL | null {
  const { protocol, hostname } = new URL(baseUrl);
  const read = (name: string): string => process.env[name.toLowerCase()] ?? process.env[name] ?? '';
  const isException = read('NO_PROXY')
    .split(/[\s,]+/)
    .some((name) => name === hostname || name === '*');
  const isLocal = hostname === 'localhost' || hostname === '[::1]' || hostname.startsWith('127.');
  return isException || isLocal
    ? null
    : URL.parse(read(protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY'));
}

async function askWithoutCredential(settings: ConnectionSettings): Promise<Exchange> {
  await using connections = new Connections(settings);
  const { origin, pathname } = new URL(settings.baseUrl);
  const path = `${pathname.replace(/\/+$/, '')}/api/v2/license/verify?license_key=${madeUpKey()}`;
  const headers = { accept: 'application/json', 'user-agent': 'latchkey' };
  const signal = AbortSignal.timeout(settings.timeoutMs);
  return await exchange(connections.current, { origin, method: 'GET', path, headers }, signal);
}

/** Whether what answers is the API: it refuses a request without a credential, by a JSON object. */
function examineAnswer(came: Exchange, { baseUrl }: UpstreamSettings): Finding {
  const read = (): { fault: string } => ({ fault: 'a request without a credential is taken' });
  const outcome = classify(came, { read, isRead: true, hidden: [], now: Date.now() });
  if (outcome.outcome === 'not_applied' && outcome.status !== null)
    return ok(`the API answers at ${baseUrl}`);
  if (outcome.outcome === 'ambiguous' && came.type === 'answered') {
    return fail(
      `what answers at ${baseUrl} is not the API: ${outcome.detail}`,
      'check upstream.base_url; behind a firewall, ask its keeper to let this machine through',
    );
  }
  const detail = outcome.outcome === 'applied' ? '' : outcome.detail;
  return fail(`${baseUrl} cannot be reached: ${detail}`, reachAdvice(detail));
}

function reachAdvice(detail: string): string {
  return /certificate|TLS|SSL|self.signed/i.test(detail)
    ? 'set upstream.ca_file to the certificate of the authority that signed the upstream’s'
    : 'check upstream.base_url, upstream.proxy, and the firewall of this machine';
}

function examineClock(came: Exchange): Finding[] {
  const sentAt = came.type === 'answered' ? sentAtOf(came) : null;
  if (sentAt === null)
    return [warn('the upstream does not say the time', 'check the clock of this machine yourself')];
  const aheadMs = Date.now() - sentAt;
  if (Math.abs(aheadMs) < noticeableMs) return [ok('the clock agrees with that of the upstream')];
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  const what = `the clock is ${seconds} s ${aheadMs > 0 ? 'ahead of' : 'behind'} that of the upstream`;
  const advice = 'let the time be set by NTP, for instance: timedatectl set-ntp true';
  return [Math.abs(aheadMs) > suspectMs ? fail(what, advice) : warn(what, advice)];
}

async function examineCredentials(
  { upstream, products }: Configuration,
  settings: ConnectionSettings,
): Promise<Finding[]> {
  if (upstream === null) return [];
  const { apiKey, headers } = upstream;
  const secretOf = (productKey: string): string | null =>
    products.find(({ key }) => key === productKey)?.secret.reveal() ?? null;
  const client = plainUpstream(
    { ...settings, headers, apiKey: () => apiKey?.reveal() ?? null, secretOf },
    { now: () => Date.now() },
  );
  await using _ = client;
  const { signal } = new AbortController();
  const findings: Finding[] = [];
  for (const { key } of products) {
    const outcome = await client.verify(key, madeUpKey(), signal);
    findings.push(examineCredential(`the secret of product ${key}`, outcome, 'missing'));
  }
  if (products.length === 0) findings.push(warn('no product is configured', 'name them under products'));
  if (apiKey === null) return [...findings, ok('no API key is configured: coupons are not served')];
  const coupons = await client.listCoupons({ limit: 1, offset: 0 }, signal);
  return [...findings, examineCredential('the API key', coupons, 'applied')];
}

/** `expected`: what comes of the question when the credential is accepted. */
function examineCredential(
  name: string,
  outcome: Outcome<unknown>,
  expected: 'missing' | 'applied',
): Finding {
  const came = outcome.outcome === 'not_applied' ? outcome.reason : outcome.outcome;
  if (came === expected) return ok(`${name} is accepted`);
  if (outcome.outcome === 'applied') {
    return fail(
      `${name}: the upstream knows a license key that nobody has issued`,
      'check upstream.base_url',
    );
  }
  const what = `${name}: ${outcome.detail}`;
  if (came === 'unauthorized') return fail(what, 'set the right one in the configuration, and reload');
  if (came === 'throttled') return warn(what, 'try again later');
  return fail(what, 'check upstream.base_url; the log of the daemon may say more');
}

/** A license key that nobody can have. */
function madeUpKey(): string {
  return `LATCHKEY-DOCTOR-${Buffer.from(systemRandom.bytes(8)).toString('hex')}`;
}
