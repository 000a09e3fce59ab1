import { counted } from '../../../domain/text.ts';
import { dayMs, formatDatetime } from '../../../domain/time.ts';
import type { KeyPair } from '../documents.ts';
import { keyEndsSoonMs } from '../domain/lease.ts';
import type { SigningDirectory, SigningKey } from '../issuer/signing-keys.ts';
import { CommandError, defineCommand, textOption } from '../../../cli/command.ts';
import { type Cell, formatFields, formatTable, instant, toned, whole } from '../../../cli/format.ts';
import { hintFor } from '../../../cli/hint.ts';
import { readTextFile } from '../../../cli/values.ts';
import { changeKeys, locateSigningDirectory } from './signing-directory.ts';

type State = 'signs' | 'listed' | 'ended' | 'not_listed';

type Listed = readonly { readonly key: SigningKey; readonly state: State }[];

const states: Readonly<Record<State, Cell>> = {
  signs: toned('signs', 'good'),
  listed: 'listed',
  ended: toned('ended', 'faint'),
  not_listed: toned('not in the statement', 'warning'),
};

export const signingKeyCommands = [
  /** Works without a daemon, and a running daemon needs no restart. */
  defineCommand({
    command: 'rotate',
    describe: 'Make the next signing key, which signs leases from now on, for 400 days',
    builder: {
      root: {
        ...textOption('Private root key, such as root-1.jwk; - is standard input', 'file'),
        demandOption: true,
      },
      retire: textOption('An earlier key that has leaked: what it has signed counts no more'),
    },
    examples: [
      ['latchkey lease signing-key rotate --root /media/usb/root-1.jwk', 'before the last key ends'],
      ['latchkey lease signing-key rotate --root root-1.jwk --retire KID', 'after the key KID has leaked'],
    ],
    epilogue:
      'The root key signs the new key statement, and is not kept. Devices get the statement with their next lease. Earlier keys stay valid until they end; a retired key is refused by all who have the statement.',
    handler: async (args, output) => {
      const { directory, ownership } = locateSigningDirectory(args);
      const root = await readRoot(args.root);
      const { rotateKey } = await import('../issuer/signing-files.ts');
      const { statement, kid, notAfter, removed } = await changeKeys('no key was made', () =>
        rotateKey(directory, { root, retired: args.retire ?? null }, Date.now(), ownership),
      );
      const { issuer, version } = statement;
      const until = formatDatetime(notAfter);
      const lines = [
        `${kid} signs leases from now on, until ${until.slice(0, 10)}; no restart is needed. The key statement has version ${version}.`,
        ...removed.map((each) => `Deleted the private key ${each}.`),
      ];
      return await output.result({ issuer, version, kid, not_after: until, removed }, lines.join('\n'));
    },
  }),
  /** Works without a daemon. */
  defineCommand({
    command: 'list',
    describe: 'List the signing keys: which ends when, and which can sign here',
    builder: {},
    examples: [['latchkey lease signing-key list', 'also warns 60 days before the last key ends']],
    handler: async (args, output) => {
      const { directory } = locateSigningDirectory(args);
      const { readSigningDirectory, signerOf } = await import('../issuer/signing-keys.ts');
      const contents = await changeKeys('cannot list the keys', () => readSigningDirectory(directory));
      const { statement, faults } = contents;
      if (statement === null && faults.length === 0) {
        throw new CommandError([
          `latchkey: leases are not set up in ${directory}: ${hintFor(args)('lease setup')}`,
        ]);
      }
      const now = Date.now();
      const signer = signerOf(contents, now);
      const soon =
        signer === null || signer.notAfter - now < keyEndsSoonMs
          ? warnOfEnd(signer?.notAfter ?? null, now)
          : [];
      const warnings = [...faults, ...soon];
      if (warnings.length > 0) output.printError(warnings.map((text) => `latchkey: ${text}`));
      const keys = contents.keys.map((key) => ({ key, state: stateOf(key, signer?.key.kid ?? null, now) }));
      return await output.result(toJson(contents, keys), [
        formatFields({ issuer: statement?.issuer, version: statement?.version, directory }),
        formatTable(keys.map(({ key, state }) => toRow(key, state))),
      ]);
    },
  }),
];

async function readRoot(file: string): Promise<KeyPair> {
  const { readPrivateKey, readPublicKey } = await import('../documents.ts');
  const text = readTextFile(file);
  const root = await readPrivateKey(text);
  if (root !== null) return root;
  const isPublic = (await readPublicKey(text)) !== null;
  const what = isPublic ? 'has only the public part of the key' : 'is not a private P-256 key (JWK)';
  throw new CommandError([`latchkey: ${file} ${what}: give a file such as root-1.jwk`]);
}

function stateOf({ kid, notAfter }: SigningKey, signing: string | null, now: number): State {
  if (notAfter === null) return 'not_listed';
  if (notAfter <= now) return 'ended';
  return kid === signing ? 'signs' : 'listed';
}

function warnOfEnd(notAfter: number | null, now: number): string[] {
  if (notAfter === null)
    return ['no key can sign here. Make one: latchkey lease signing-key rotate --root FILE'];
  const days = Math.floor((notAfter - now) / dayMs);
  return [
    `the last key ends in ${counted(days, 'day')}. Make the next one: latchkey lease signing-key rotate --root FILE`,
  ];
}

function toJson({ statement, keys }: SigningDirectory, listed: Listed): object {
  return {
    issuer: statement?.issuer ?? null,
    version: statement?.version ?? null,
    total: keys.length,
    keys: listed.map(({ key, state }) => ({
      kid: key.kid,
      state,
      not_after: key.notAfter === null ? null : formatDatetime(key.notAfter),
      has_private_key: key.pair !== null,
    })),
  };
}

function toRow({ kid, notAfter, pair }: SigningKey, state: State): Record<string, Cell> {
  return {
    key: whole(kid),
    state: states[state],
    until: notAfter === null ? null : instant(formatDatetime(notAfter)),
    'private key': pair === null ? 'not here' : 'here',
  };
}
