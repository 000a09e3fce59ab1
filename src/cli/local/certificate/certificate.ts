import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseHost } from '../../../config/value/address.ts';
import { formatReason } from '../../../config/fault/fault.ts';
import { type Command, defineCommand, textOption, UsageError } from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { formatFields, instant, type Shown } from '../../format.ts';
import { makeDirectory } from '../../../store/sqlite/files/private-file.ts';
import type { MadeCertificate } from './certificate-maker.ts';
import { trustAdvice } from './certificate-trust.ts';

/** Apple's clients take none that lasts longer. */
const mostDays = 825;

/** `certificate make`: works without a daemon. */
export const makeCertificateCommand: Command = defineCommand(
  (syntax) =>
    syntax
      .options({
        host: { ...textOption('Host names and addresses, separated by commas'), required: true },
        out: { ...textOption('Directory to write to; created if missing', 'folder'), required: true },
        days: {
          type: 'number',
          default: mostDays,

          describe: `Days until it expires, 1 to ${mostDays}`,
        },
      })
      .example(
        'latchkey certificate make --host api.example.com --out ./tls',
        'for listen.tls on this machine',
      ),
  async (args, output) => {
    const hosts = parseHosts(args.host);
    if (!Number.isInteger(args.days) || args.days < 1 || args.days > mostDays) {
      throw new UsageError(`--days must be a whole number from 1 to ${mostDays}`);
    }
    const files = filesIn(resolve(args.out));
    const taken = Object.values(files).find((path) => existsSync(path));
    if (taken !== undefined) {
      output.complain([`latchkey: ${taken} is there already: nothing was written`]);
      return exitCode.failed;
    }
    const { makeCertificate } = await import('./certificate-maker.ts');
    const made = await makeCertificate(hosts, { days: args.days, now: Date.now() });
    try {
      write(files, made);
    } catch (error) {
      output.complain([`latchkey: cannot write to ${resolve(args.out)}: ${formatReason(error)}`]);
      return exitCode.failed;
    }
    const notAfter = made.notAfter.toISOString();
    if (args.json) output.printJson({ ...files, hosts, not_after: notAfter });
    else await output.show(explain(files, hosts, notAfter));
    return exitCode.done;
  },
);

interface Files {
  readonly ca: string;
  readonly cert: string;
  readonly key: string;
}

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
 * The key last: whoever finds one knows that the rest is there. Nothing that is there is written over, and what cannot
 * be written whole is taken away again: the next try would find it there.
 */
function write({ ca, cert, key }: Files, made: MadeCertificate): void {
  makeDirectory(resolve(ca, '..'));
  using begun = new DisposableStack();
  const add = (path: string, text: string, mode: number): void => {
    writeFileSync(path, '', { flag: 'wx', mode });
    begun.defer(() => {
      rmSync(path);
    });
    writeFileSync(path, text);
  };
  add(ca, made.authority, 0o644);
  add(cert, made.certificate, 0o644);
  add(key, made.key, 0o600);
  begun.move();
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
    'Nobody has the key of the authority: to renew, make a new directory, and tell the platforms again.',
  ];
}
