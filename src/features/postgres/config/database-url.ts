import { hostOf, isLoopback } from '../../../config/value/address.ts';

type DatabaseLocation = {
  /** A name or an address, or the directory of a Unix socket. */
  host: string;
  port: number;
  user: string;
  password: string;
  database: string;
  /** Whether the connection uses TLS and verifies the certificate and the name of the server. */
  isSecure: boolean;
};

const usualPort = 5432;

/**
 * Reads a URL such as `postgres://user:password@host:5432/database?sslmode=verify-full`, or `postgres://user@localhost/database?host=/run/postgresql`
 * for a Unix socket; null if the URL is not valid. The connection uses TLS with the certificate verified, unless the URL says
 * `sslmode=disable` and the host is this machine, or the host is a socket. The environment is ignored.
 */
export function parseDatabaseUrl(text: string): DatabaseLocation | null {
  const url = URL.parse(text);
  if (url === null || !['postgres:', 'postgresql:'].includes(url.protocol)) return null;
  const { host: socket = null, sslmode = 'verify-full', ...others } = Object.fromEntries(url.searchParams);
  if (Object.keys(others).length > 0) return null;
  const parts = partsOf(url);
  const host = socket ?? hostOf(url);
  const isSocket = host.startsWith('/');
  if (host === '' || parts === null || parts.user === '' || parts.database === '') return null;
  if (!isSocket && sslmode !== 'verify-full' && (sslmode !== 'disable' || !isLoopback(host))) return null;
  const port = url.port === '' ? usualPort : Number(url.port);
  return { ...parts, host, port, isSecure: !isSocket && sslmode === 'verify-full' };
}

function partsOf(url: URL): Pick<DatabaseLocation, 'user' | 'password' | 'database'> | null {
  try {
    return {
      user: decodeURIComponent(url.username),
      password: decodeURIComponent(url.password),
      database: decodeURIComponent(url.pathname.slice(1)),
    };
  } catch {
    return null;
  }
}
