import 'reflect-metadata';
import { isIP } from 'node:net';
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';
import { hourMs, dayMs } from '../../domain/time.ts';

/** A certificate with its key, and the authority that clients trust (PEM). */
export interface MadeCertificate {
  readonly authority: string;
  readonly certificate: string;
  readonly key: string;
  readonly notAfter: Date;
}

/** All TLS clients support it, and keys are small and fast to create. */
const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;
/** The certificate starts earlier, for clients whose clocks are behind. */
const earlierMs = hourMs;
/** The limit of X.520 for a common name. */
const maxNameLength = 64;

/**
 * Creates a certificate for these hosts (names and addresses), signed by a new authority.
 *
 * The authority's key is not kept, so that no certificate for another host can be signed with it.
 */
export async function makeCertificate(
  hosts: readonly [string, ...string[]],
  { days, now }: { readonly days: number; readonly now: number },
): Promise<MadeCertificate> {
  const notBefore = new Date(now - earlierMs);
  const notAfter = new Date(notBefore.getTime() + days * dayMs);
  const [authorityKeys, keys] = await Promise.all([makeKeys(), makeKeys()]);
  const issuer = nameOf(`Latchkey authority of ${hosts[0]}`);
  const authority = await X509CertificateGenerator.createSelfSigned({
    name: issuer,
    keys: authorityKeys,
    notBefore,
    notAfter,
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(authorityKeys.publicKey),
    ],
  });
  const certificate = await X509CertificateGenerator.create({
    subject: nameOf(hosts[0]),
    issuer,
    publicKey: keys.publicKey,
    signingKey: authorityKeys.privateKey,
    notBefore,
    notAfter,
    signingAlgorithm: algorithm,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(
        hosts.map((value) => ({ type: isIP(value) === 0 ? ('dns' as const) : ('ip' as const), value })),
      ),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(authorityKeys.publicKey),
    ],
  });
  const key = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  return {
    authority: `${authority.toString('pem')}\n`,
    certificate: `${certificate.toString('pem')}\n`,
    key: `${PemConverter.encode(key, 'PRIVATE KEY')}\n`,
    notAfter,
  };
}

function makeKeys(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
}

function nameOf(commonName: string): { CN: string[] }[] {
  return [{ CN: [commonName.slice(0, maxNameLength)] }];
}
