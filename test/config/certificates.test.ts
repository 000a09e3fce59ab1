import { X509Certificate } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { configurationOf, errorsOf, folder } from '../support/builders/config-builders.ts';
import { certificate, privateKey } from '../support/network/certificate.ts';

const path = `${folder}/ca.pem`;
const der = new X509Certificate(certificate).raw.toString('utf8');
const truncated = certificate.replace('-----END CERTIFICATE-----\n', '');
const damaged = certificate.replace('MIIBSTCB8KADAgECAgEBMAoG', 'MIIBSTCB8KADAgECAgEBMAo');

const wrongFiles: readonly [file: string, text: string, error: string][] = [
  ['is empty', '', 'does not contain a certificate (PEM)'],
  ['is a text', 'no certificate', 'does not contain a certificate (PEM)'],
  [
    'is in DER',
    der,
    'does not contain a certificate (PEM), but binary data (DER): convert it with openssl x509 -inform der',
  ],
  ['ends too early', truncated, 'is damaged: certificate 1 of 1 cannot be read'],
  [
    'has a damaged second certificate',
    `${certificate}${damaged}${certificate}`,
    'is damaged: certificate 2 of 3 cannot be read',
  ],
  ['ends within the second certificate', `${certificate}${truncated}`, 'certificate 2 of 2 cannot be read'],
];
const key: (typeof wrongFiles)[number] = [
  'is a private key',
  privateKey,
  'contains a private key: it must contain certificates only',
];
const keyToo: (typeof wrongFiles)[number] = [
  'has a private key behind the certificate',
  `${certificate}${privateKey}`,
  'contains a private key: it must contain certificates only',
];
const list: (typeof wrongFiles)[number] = [
  'contains a revocation list',
  `${certificate}-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n`,
  'contains X509 CRL: only CERTIFICATE is allowed',
];

describe('upstream.ca_file', () => {
  const setting = 'upstream.ca_file';
  const text = 'upstream: { base_url: "https://store.example", ca_file: ca.pem }';
  test.each([...wrongFiles, key, keyToo, list])(
    'a file of certificates that %s is an error of the configuration',
    (_, content, error) => {
      const errors = errorsOf({ text, files: { [path]: content } });
      expect(errors).toEqual([expect.stringContaining(`${setting}: ${path} `)]);
      expect(errors[0]).toContain(error);
      expect(errors[0]).not.toContain('MIG');
    },
  );

  test('a file that does not exist is an error of the configuration', () => {
    expect(errorsOf({ text })).toEqual([
      `${setting}: cannot read ${path}: no such file or directory (from ${folder}/config.yaml line 1)`,
    ]);
  });

  test.each([
    ['several certificates', `${certificate}${certificate}`],
    ['comments and Windows line ends', `# Root\r\n${certificate.replaceAll('\n', '\r\n')}\r\n# end`],
    ['a byte order mark', `\u{FEFF}${certificate}`],
  ])('a file with %s is accepted', (_, content) => {
    expect(configurationOf({ text, files: { [path]: content } })).toBeDefined();
  });
});

test.each(wrongFiles)(
  'a listen.tls.cert_file that %s is an error of the configuration',
  (_, content, error) => {
    const text = 'listen: { tls: { cert_file: ca.pem, key_file: key.pem } }';
    const errors = errorsOf({ text, files: { [path]: content, [`${folder}/key.pem`]: privateKey } });
    expect(errors).toEqual([expect.stringContaining(`listen.tls.cert_file: ${path} `)]);
    expect(errors[0]).toContain(error);
  },
);

test('listen.tls accepts one file that contains the certificate and the key', () => {
  const text = 'listen: { tls: { cert_file: ca.pem, key_file: ca.pem } }';
  expect(errorsOf({ text, files: { [path]: `${privateKey}${certificate}` } })).toEqual([]);
});
