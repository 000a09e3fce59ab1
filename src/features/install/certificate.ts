import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { formatReason } from '../../config/errors.ts';
import { restrictToOwner } from '../../config/file/windows-rights.ts';
import { parseHost } from '../../config/value/address.ts';
import { makeDirectory } from '../../store/sqlite/files/private-file.ts';
import { CommandError, defineCommand, textOption, UsageError } from '../../cli/command.ts';
import { formatFields, instant, type Shown } from '../../cli/format.ts';
import type { MadeCertificate } from './certificate-maker.ts';

/** Apple's clients reject certificates that last longer. */
const maxDays = 825;

interface Files {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

export const commands = [
  /** Works without a daemon. */
  defineCommand({
    command: 'make',
    describe: 'Create a certificate for these hosts, and say how to trust it',
    builder: {
      host: { ...textOption('Host names and addresses, separated by commas'), demandOption: true },
      out: { ...textOption('Directory to write to; created if missing', 'folder'), demandOption: true },
      days: { type: 'number', default: maxDays, describe: `Days until it expires, 1 to ${maxDays}` },
    },
    examples: [
      ['latchkey certificate make --host api.example.com --out ./tls', 'for listen.tls on this machine'],
    ],
    handler: async (args, output) => {
      const hosts = parseHosts(args.host);
      if (!Number.isInteger(args.days) || args.days < 1 || args.days > maxDays) {
        throw new UsageError(`--days must be a whole number from 1 to ${maxDays}`);
      }
      const files = filesIn(resolve(args.out));
      const taken = Object.values(files).find((path) => existsSync(path));
      if (taken !== undefined) {
        throw new CommandError([`latchkey: ${taken} already exists: nothing was written`]);
      }
      const { makeCertificate } = await import('./certificate-maker.ts');
      const made = await makeCertificate(hosts, { days: args.days, now: Date.now() });
      try {
        write(files, made);
      } catch (error) {
        throw new CommandError([`latchkey: cannot write to ${resolve(args.out)}: ${formatReason(error)}`]);
      }
      const notAfter = made.notAfter.toISOString();
      return await output.result({ ...files, hosts, not_after: notAfter }, explain(files, hosts, notAfter));
    },
  }),
];

function filesIn(directory: string): Files {
  return {
    ca: join(directory, 'ca.pem'),
    cert: join(directory, 'cert.pem'),
    key: join(directory, 'key.pem'),
  };
}

function parseHosts(text: string): readonly [string, ...string[]] {
  const [first, ...others] = text.split(',').map((word) => {
    const host = parseHost(word.trim());
    if (host === undefined)
      throw new UsageError('--host takes host names and addresses, without scheme or port');
    return host;
  });
  return [first ?? '', ...others];
}

/**
 * Writes the key last, so that a key is there only with the other files. Never overwrites a file. If one file cannot be
 * written, the others are removed, so that the next try does not fail because of them.
 */
function write({ ca, cert, key }: Files, made: MadeCertificate): void {
  makeDirectory(resolve(ca, '..'));
  using created = new DisposableStack();
  const add = (path: string, text: string, mode: number): void => {
    writeFileSync(path, '', { flag: 'wx', mode });
    created.defer(() => {
      rmSync(path);
    });
    if (path === key && process.platform === 'win32') restrictToOwner(path, 'file');
    writeFileSync(path, text);
  };
  add(ca, made.authority, 0o644);
  add(cert, made.certificate, 0o644);
  add(key, made.key, 0o600);
  created.move();
}

function explain({ ca, cert, key }: Files, hosts: readonly string[], notAfter: string): Shown {
  return [
    formatFields({ hosts: hosts.join(', '), until: instant(notAfter), ca, certificate: cert, key }),
    [
      'In the configuration:',
      '  listen:',
      `    tls: { cert_file: ${cert}, key_file: ${key} }`,
      `    allowed_hosts: [${hosts.join(', ')}]`,
    ].join('\n'),
    trustAdvice(ca),
    'The CA key was not kept. To renew, create new files and trust them again.',
  ];
}

function trustAdvice(file: string): string {
  return [
    'Software has to trust it first. To trust it on a whole machine:',
    `  Debian, Ubuntu   sudo cp ${file} /usr/local/share/ca-certificates/latchkey.crt && sudo update-ca-certificates`,
    `  Fedora, RHEL     sudo cp ${file} /etc/pki/ca-trust/source/anchors/latchkey.pem && sudo update-ca-trust`,
    `  Arch             sudo trust anchor --store ${file}`,
    `  macOS            sudo security add-trusted-cert -d -r trustRoot -k /Library/Keychains/System.keychain ${file}`,
    `  Windows (admin)  certutil -addstore -f Root ${file}`,
    'For one program that has its own list of authorities:',
    `  Node             NODE_EXTRA_CA_CERTS=${file}`,
    `  Python           SSL_CERT_FILE=${file}   (requests: REQUESTS_CA_BUNDLE; either replaces the public ones)`,
    `  Java             keytool -importcert -cacerts -storepass changeit -noprompt -alias latchkey -file ${file}`,
    `  Go, on Linux     SSL_CERT_FILE=${file}   (replaces the public ones)`,
    `  curl             --cacert ${file}`,
  ].join('\n');
}
