import 'reflect-metadata';
import {
  BasicConstraintsExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  X509CertificateGenerator,
} from '@peculiar/x509';

const algorithm = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** A certificate, its key, and the authority that signed it (PEM). */
export type MadeCertificate = { authority: string; certificate: string; key: string };

/** Makes a certificate for hosts (names and IPv4 addresses), valid for so many days from `now` (epoch ms). */
export async function makeCertificate(
  hosts: readonly string[],
  { days, now }: { days: number; now: number },
): Promise<MadeCertificate> {
  const notBefore = new Date(now - 3_600_000);
  const notAfter = new Date(now + days * 86_400_000);
  const dates = { notBefore, notAfter, signingAlgorithm: algorithm };
  const authorityKeys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const authority = await X509CertificateGenerator.createSelfSigned({
    name: 'CN=Authority of a test',
    keys: authorityKeys,
    extensions: [new BasicConstraintsExtension(true, 0, true)],
    ...dates,
  });
  const keys = await crypto.subtle.generateKey(algorithm, true, ['sign', 'verify']);
  const names = hosts.map((value) => ({
    type: /^[\d.]+$/.test(value) ? ('ip' as const) : ('dns' as const),
    value,
  }));
  const certificate = await X509CertificateGenerator.create({
    subject: `CN=${hosts[0]}`,
    issuer: authority.subject,
    publicKey: keys.publicKey,
    signingKey: authorityKeys.privateKey,
    extensions: [new SubjectAlternativeNameExtension(names)],
    ...dates,
  });
  const key = await crypto.subtle.exportKey('pkcs8', keys.privateKey);
  return {
    authority: `${authority.toString('pem')}\n`,
    certificate: `${certificate.toString('pem')}\n`,
    key: `${PemConverter.encode(key, 'PRIVATE KEY')}\n`,
  };
}
