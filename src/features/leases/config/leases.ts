import { z } from 'zod';
import { type FeatureSection } from '../../../config/core-sections.ts';
import { engineIn } from '../../../config/engine.ts';
import { maxDeviceNameLength } from '../domain/lease.ts';
import { readCertificates } from '../../../config/file/certificates.ts';
import { rule, section } from '../../../config/section.ts';
import {
  issuerUrl,
  optional,
  textOrFalse,
  path,
  proxyUrl,
  shortText,
  wait,
} from '../../../config/setting-types.ts';
import { readRootKey } from './root-key.ts';

const ofHolder = ['roots', 'device_key_file', 'ca_file', 'proxy'] as const;

const leases = section(
  z
    .strictObject({
      issuer: optional(issuerUrl).meta({
        description:
          'The base URL of the issuer of leases; `/lease/v1` is appended. With this setting, the process is a holder: it has leases for this device, and no secret of the vendor.',
      }),
      roots: z.array(path).prefault([]).meta({
        description:
          'The files of the public root keys of the vendor (JWK), at least one for a holder. A lease counts only if one of these keys has signed the statement about its signing key.',
      }),
      activate: z.enum(['on_verify', 'explicit']).prefault('on_verify').meta({
        description:
          'When a holder takes a seat: at the first verify of a license key, or only by `latchkey activate` and `POST /agent/v1/activations`.',
        reload: 'applies',
      }),
      device_key_file: optional(path).meta({
        description:
          'The private key of this device (JWK), for containers that keep no state directory. The key is the identity of the device: each device needs its own. If omitted, the first start makes `device.jwk` in `state_dir`.',
      }),
      device_name: textOrFalse(shortText(maxDeviceNameLength)).nullable().prefault(null).meta({
        description:
          'The name of this device that the vendor and the other users of the license see. `false` sends no name.',
        defaultText: 'the host name',
        reload: 'applies',
      }),
      timeout: wait.prefault('10s').meta({
        description: 'How long a request to the issuer may take until the response is complete.',
      }),
      ca_file: optional(path).meta({
        description:
          'Certificates (PEM) to trust at the issuer in addition to those of the system and those that Node contains.',
      }),
      proxy: optional(proxyUrl).meta({
        description:
          'The HTTP proxy to the issuer; it may include a user and a password. If omitted, `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` decide, as for `upstream.proxy`.',
      }),
      signing_dir: optional(path).meta({
        description:
          'The directory of the signing keys and the key statement of an issuer (`latchkey lease setup`), if several nodes share it.',
        defaultText: '`signing` in `state_dir`',
      }),
    })
    .refine(
      ({ issuer, roots }) => issuer === null || roots.length > 0,
      rule(['roots', 'issuer'], 'must name at least one public root key, which the vendor publishes'),
    )
    .refine(
      (input) =>
        input.issuer !== null ||
        ofHolder.every(
          (key) => input[key] === null || (Array.isArray(input[key]) && input[key].length === 0),
        ),
      rule(
        ['issuer', ...ofHolder],
        `is missing, and ${ofHolder.slice(0, -1).join(', ')} and ${ofHolder.at(-1)} are only for a holder: set it, or remove them`,
      ),
    )
    .refine(
      ({ issuer, signing_dir }) => issuer === null || signing_dir === null,
      rule(['signing_dir', 'issuer'], 'is only for an issuer: a holder signs no leases'),
    ),
).meta({
  description:
    'Leases prove a license on a device without the secret of the product. A holder gets them from its issuer: an authority, or an agent on the server of the vendor.',
  reload: 'restart',
});

export type LeaseSettings = z.output<typeof leases>;

declare module '../../../config/core-sections.ts' {
  interface SectionsOfFeatures {
    readonly leases: LeaseSettings;
  }
}

/** With an issuer, the process is a holder. */
export const leasesSection: FeatureSection = {
  name: 'leases',
  before: 'freshness',
  type: leases.prefault({}),
  rules: [
    {
      keeps: (input) => input.leases.issuer === null || (input.upstream === null && engineIn(input) === null),
      or: rule(
        ['leases', 'upstream', 'store'],
        'has an issuer, which makes this process a holder: remove upstream and store, or leases.issuer',
      ),
    },
  ],
  roleIn: ({ leases: { issuer } }) => (issuer === null ? null : 'holder'),
  // A holder reads them again when it starts.
  check({ leases: { caFile, roots } }, readFile) {
    const certificates = caFile === null ? null : readCertificates(caFile, readFile);
    return [
      ...(certificates?.ok === false ? [{ at: ['leases', 'ca_file'], text: certificates.text }] : []),
      ...roots.flatMap((root, index) => {
        const read = readRootKey(root, readFile);
        return read.ok ? [] : [{ at: ['leases', 'roots', index], text: read.text }];
      }),
    ];
  },
  secretFiles: ({ leases: { deviceKeyFile } }) =>
    deviceKeyFile === null ? [] : [{ key: ['leases', 'device_key_file'], path: deviceKeyFile }],
};
