import { resolve } from 'node:path';
import { counted } from '../../domain/text.ts';
import { dayMs, formatDatetime } from '../../domain/time.ts';
import type { SigningDirectory, SigningKey } from '../../lease/signing-keys.ts';
import type { KeyStatement } from '../../wire/lease.ts';
import { CommandError, defineCommand, positional, textOption } from '../command.ts';
import { type Cell, formatFields, formatTable, instant, toned, whole } from '../format.ts';
import { formatPath, type Hint, hintFor, quoteForShell } from '../hint.ts';
import { readTextFile } from '../values.ts';
import { changeKeys, locateSigningDirectory, withNewFile } from './lease/signing-directory.ts';

interface WrittenDraft<Value> {
  readonly file: string;
  readonly version: number;
  readonly value: Value;
}

type State = 'signs' | 'listed' | 'ended' | 'not_listed';

type Listed = readonly { readonly key: SigningKey; readonly state: State }[];

const states: Readonly<Record<State, Cell>> = {
  signs: toned('signs', 'good'),
  listed: 'listed',
  ended: toned('ended', 'faint'),
  not_listed: toned('not in the statement', 'warning'),
};

export const commands = [
  /** Works without a daemon. */
  defineCommand({
    command: 'add',
    describe: 'Make a signing key for 400 days, and write a draft of the key statement that lists it',
    builder: {
      output: textOption('New file for the draft; default: statement-VERSION.json', 'file'),
    },
    examples: [['latchkey signing-key add', 'then sign the draft where a root key is, and install it']],
    handler: async (args, output) => {
      const { directory, ownership } = locateSigningDirectory(args);
      const { addKey } = await import('../../lease/signing-files.ts');
      const made = await changeKeys('no key was added', () =>
        writeDraft(directory, args.output, async () => {
          const { kid, draft } = await addKey(directory, Date.now(), ownership);
          return { draft, value: { kid, notAfter: draft.keys.at(-1)?.notAfter ?? 0 } };
        }),
      );
      const { kid, notAfter } = made.value;
      const until = formatDatetime(notAfter);
      return await output.result({ kid, not_after: until, version: made.version, draft: made.file }, [
        `Made the key ${kid}. It ends on ${until.slice(0, 10)}, and signs as soon as its statement is installed.`,
        explainDraft(made.file, hintFor(args)),
      ]);
    },
  }),
  /** Works without a daemon. */
  defineCommand({
    command: 'list',
    describe: 'List the signing keys: which ends when, and which can sign here',
    builder: {},
    examples: [['latchkey signing-key list', 'also warns 60 days before the last key ends']],
    handler: async (args, output) => {
      const { directory } = locateSigningDirectory(args);
      const { keyEndsSoonMs, readSigningDirectory, signerOf } = await import('../../lease/signing-keys.ts');
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
  /** Works without a daemon. */
  defineCommand({
    command: 'retire <kid>',
    describe: 'Write a draft of the key statement without a signing key',
    builder: {
      kid: positional('The key, as signing-key list shows it'),
      draft: textOption(
        'A draft of signing-key add to change, so that one statement replaces the key',
        'file',
      ),
      output: textOption('New file for the draft; default: statement-VERSION.json', 'file'),
    },
    examples: [
      ['latchkey signing-key retire KID', 'leases of the key are refused where the next statement is known'],
      [
        'latchkey signing-key retire KID --draft statement-2.json --output new.json',
        'after a leak: replace the key at once',
      ],
    ],
    epilogue: 'The private key is deleted when the signed statement is installed, and not before.',
    handler: async (args, output) => {
      const { directory } = locateSigningDirectory(args);
      const { parseDraft, retireKey } = await import('../../lease/signing-files.ts');
      const now = Date.now();
      const made = await changeKeys('no key was retired', async () => {
        const base = args.draft === undefined ? null : await parseDraft(readTextFile(args.draft), now);
        return await writeDraft(directory, args.output, async () => ({
          draft: await retireKey(directory, args.kid, base, now),
          value: null,
        }));
      });
      return await output.result({ kid: args.kid, version: made.version, draft: made.file }, [
        `${args.kid} signs until the next statement is installed.`,
        explainDraft(made.file, hintFor(args)),
      ]);
    },
  }),
];

/** Writes a draft into a new file. `file`: undefined chooses the name from the version. */
async function writeDraft<Value>(
  directory: string,
  file: string | undefined,
  make: () => Promise<{ draft: KeyStatement; value: Value }>,
): Promise<WrittenDraft<Value>> {
  const { formatDraft, nextVersion } = await import('../../lease/signing-files.ts');
  const name = resolve(file ?? `statement-${await nextVersion(directory)}.json`);
  return await withNewFile(name, async () => {
    const { draft, value } = await make();
    return { text: formatDraft(draft), value: { file: name, version: draft.version, value } };
  });
}

/** What to do with a draft. */
function explainDraft(file: string, hint: Hint): string {
  const signed = `${file.replace(/\.json$/, '')}.jwt`;
  const [draft, statement] = [file, signed].map((name) => quoteForShell(formatPath(name)));
  return [
    `The draft is ${draft}. Where a root key is:`,
    `  latchkey lease statement sign ${draft} --root root-1.jwk --output ${statement}`,
    'Then here:',
    `  ${hint(`lease statement install ${statement}`)}`,
  ].join('\n');
}

function stateOf({ kid, notAfter }: SigningKey, signing: string | null, now: number): State {
  if (notAfter === null) return 'not_listed';
  if (notAfter <= now) return 'ended';
  return kid === signing ? 'signs' : 'listed';
}

function warnOfEnd(notAfter: number | null, now: number): string[] {
  if (notAfter === null) return ['no key can sign here. Add a key: latchkey signing-key add'];
  const days = Math.floor((notAfter - now) / dayMs);
  return [`the last key ends in ${counted(days, 'day')}. Add the next key: latchkey signing-key add`];
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
