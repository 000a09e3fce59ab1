import { createRequire } from 'node:module';
import type * as tls from 'node:tls';

/** Makes the TLS context of a client when the first connection needs the context, and once. */
export type LazyTrust = () => tls.SecureContext;

/** Loaded where it is needed: it takes 1 MiB, and a process may speak no TLS. */
function loadTls(): typeof tls {
  return createRequire(import.meta.url)('node:tls') as typeof tls;
}

/** Trusts the certificates of the system, of Node (`NODE_EXTRA_CA_CERTS`), and `more` (PEM). Making it takes 0.1 s. */
export function trustSystemAnd(...more: readonly string[]): LazyTrust {
  let context: tls.SecureContext | null = null;
  return () => {
    const { createSecureContext } = loadTls();
    // A certificate that is named in a setting is trusted itself, also if another authority has signed it.
    const allowPartialTrustChain = more.length > 0;
    context ??= createSecureContext({ ca: [...systemCertificates(), ...more], allowPartialTrustChain });
    return context;
  };
}

/** Trusts these certificates (PEM) alone. */
export function trustOnly(ca: string): LazyTrust {
  let context: tls.SecureContext | null = null;
  return () => (context ??= loadTls().createSecureContext({ ca }));
}

function systemCertificates(): string[] {
  const { getCACertificates } = loadTls();
  return [...new Set([...getCACertificates('default'), ...getCACertificates('system')])];
}
