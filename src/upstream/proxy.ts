import { BlockList, isIP } from 'node:net';

/** The proxy to an upstream, and the setting or environment variable that names it. */
export type ProxyChoice = { url: string; source: string };

type Environment = Readonly<Record<string, string | undefined>>;
type Target = { baseUrl: string; proxy: string | null; connectTo: object | null };

/** The proxy to an upstream; null if there is none. */
export function chooseProxy(
  { baseUrl, proxy, connectTo }: Target,
  environment: Environment,
): ProxyChoice | null {
  if (connectTo !== null || proxy === '') return null;
  if (proxy !== null) return { url: proxy, source: 'upstream.proxy' };
  // A proxy from the environment cannot reach this machine's loopback.
  if (isLoopback(baseUrl)) return null;
  const isSecure = new URL(baseUrl).protocol === 'https:';
  const found = (isSecure ? read('HTTPS_PROXY', environment) : null) ?? read('HTTP_PROXY', environment);
  const exceptions = read('NO_PROXY', environment)?.url ?? '';
  return found === null || found.url === '' || isException(new URL(baseUrl), exceptions) ? null : found;
}

/** The proxy without user and password; null if the URL is invalid. */
export function formatProxy({ url }: ProxyChoice): string | null {
  const parsed = URL.parse(url);
  // `proxy:3128` is a URL without a host.
  return parsed === null || parsed.host === '' ? null : `${parsed.protocol}//${parsed.host}`;
}

/** An empty lower-case variable hides the upper-case one. On Windows, both names are the same variable. */
function read(name: string, environment: Environment): ProxyChoice | null {
  const lower = name.toLowerCase();
  const isUpper = environment[lower] === undefined || environment[lower] === environment[name];
  const source = isUpper ? name : lower;
  const url = environment[source];
  return url === undefined ? null : { url: url.trim(), source };
}

function isLoopback(url: string): boolean {
  return /^(?:(?:.+\.)?localhost|127\.[\d.]+|\[::1\])$/.test(new URL(url).hostname);
}

/** The variable that lists hosts without a proxy, and those of its entries that no host matches; null: all are understood. */
export function ignoredExceptions(environment: Environment): { source: string; entries: string[] } | null {
  const exceptions = read('NO_PROXY', environment);
  const entries = entriesOf(exceptions?.url ?? '').filter((entry) => !isUnderstood(splitPort(entry)[0]));
  return exceptions === null || entries.length === 0
    ? null
    : { source: exceptions.source, entries: entries.slice(0, 5).map((entry) => entry.slice(0, 100)) };
}

function entriesOf(noProxy: string): string[] {
  return noProxy
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((entry) => entry !== '');
}

function isUnderstood(name: string): boolean {
  if (name === '*' || rangeOf(name) !== null) return true;
  // Numbers are an address: a part of an address matches no host.
  return (
    /^(?:\*|\*?\.)?[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)*\.?$/u.test(name) && !/^\*?\.?[\d.]+$/.test(name)
  );
}

const usualPorts: Readonly<Record<string, string>> = { 'http:': '80', 'https:': '443' };

/**
 * Whether NO_PROXY names the host of a URL. As in curl, it lists names (with their subdomains), IP addresses, ranges
 * (`10.0.0.0/8`) and `*`, separated by commas or spaces. As in undici, a port may follow, `*.example.com` means the
 * subdomains only, and `*example.com` every name with this end. Names are not resolved.
 */
export function isException(url: URL, noProxy: string): boolean {
  const host = url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
  const port = url.port === '' ? (usualPorts[url.protocol] ?? '') : url.port;
  return entriesOf(noProxy).some((entry) => {
    const [name, entryPort] = splitPort(entry);
    if (entryPort !== null && entryPort !== port) return false;
    return isIP(host) === 0 ? namesHost(name, host) : namesAddress(name, host);
  });
}

/** An IPv6 address with a port is in brackets: its own colons separate no port. */
function splitPort(entry: string): [name: string, port: string | null] {
  const bracketed = /^\[([^\]]*)\](\/\d+)?(?::(\d+))?$/.exec(entry);
  if (bracketed !== null) return [`${bracketed[1] ?? ''}${bracketed[2] ?? ''}`, bracketed[3] ?? null];
  const [name = '', port, ...more] = entry.split(':');
  return port === undefined || more.length > 0 || !/^\d+$/.test(port) ? [entry, null] : [name, port];
}

function namesHost(entry: string, host: string): boolean {
  const name = entry.replace(/^\*?\./, '').replace(/\.$/, '');
  if (name === '*') return true;
  if (/^\*[^.]/.test(name)) return host.endsWith(name.slice(1));
  return name !== '' && ((name === host && !entry.startsWith('*')) || host.endsWith(`.${name}`));
}

function namesAddress(entry: string, host: string): boolean {
  return entry === '*' || (rangeOf(entry)?.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6') ?? false);
}

/** An address or a range; null: the entry is neither. */
function rangeOf(entry: string): BlockList | null {
  const [address = '', bits] = entry.split('/');
  const family = isIP(address);
  if (family === 0) return null;
  const type = family === 4 ? 'ipv4' : 'ipv6';
  const longest = family === 4 ? 32 : 128;
  const prefix = bits === undefined ? longest : /^\d{1,3}$/.test(bits) ? Number(bits) : Number.NaN;
  if (!(prefix <= longest)) return null;
  const range = new BlockList();
  range.addSubnet(address, prefix, type);
  return range;
}
