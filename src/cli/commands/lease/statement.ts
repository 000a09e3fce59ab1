import { formatDatetime } from '../../../domain/time.ts';
import type { KeyStatement, PublicJwk } from '../../../wire/lease.ts';
import { CommandError, defineCommand, positional, positionalGroup, textOption } from '../../command.ts';
import { formatFields, formatTable, instant, whole } from '../../format.ts';
import { readTextFile } from '../../values.ts';
import { changeKeys, locateSigningDirectory, withNewFile } from './signing-directory.ts';

export const statementCommands = [
  /** Works anywhere, without a daemon and without a configuration. */
  defineCommand({
    command: 'sign <draft>',
    describe: 'Sign a draft of a key statement with a root key',
    builder: {
      draft: positional('Draft that signing-key add or retire has written', 'file'),
      root: { ...textOption('Private root key, such as root-1.jwk', 'file'), demandOption: true },
      output: textOption('New file for the signed statement; default: standard output', 'file'),
    },
    examples: [
      [
        'latchkey lease statement sign statement-2.json --root ./roots/root-1.jwk --output statement-2.jwt',
        'on the machine that has the root key',
      ],
    ],
    handler: async (args, output) => {
      const { parseDraft, signDraft } = await import('../../../lease/signing-files.ts');
      const { readPrivateKey, readPublicKey } = await import('../../../lease/documents.ts');
      const root = await readPrivateKey(readTextFile(args.root));
      if (root === null) {
        const isPublic = (await readPublicKey(readTextFile(args.root))) !== null;
        const what = isPublic ? 'has only the public part of the key' : 'is not a private P-256 key (JWK)';
        throw new CommandError([`latchkey: ${args.root} ${what}: give a file such as root-1.jwk`]);
      }
      const sign = () =>
        changeKeys(`${args.draft} was not signed`, async () => {
          const draft = await parseDraft(readTextFile(args.draft), Date.now());
          return { draft, statement: await signDraft(draft, root) };
        });
      const { output: file } = args;
      const { draft, statement } =
        file === undefined
          ? await sign()
          : await withNewFile(file, async () => {
              const signed = await sign();
              return { text: `${signed.statement}\n`, value: signed };
            });
      return await output.result(
        { version: draft.version, root: root.kid, statement, file: file ?? null },
        file === undefined ? statement : `Signed version ${draft.version} of ${draft.issuer}: ${file}`,
      );
    },
  }),
  /** Works without a daemon, and a running daemon needs no restart. */
  defineCommand({
    command: 'install <file>',
    describe: 'Install a signed key statement; the private keys that it no longer lists are deleted',
    builder: { file: positional('Statement that lease statement sign has signed', 'file') },
    examples: [
      ['latchkey lease statement install statement-2.jwt', 'at the issuer; a running daemon uses it at once'],
    ],
    handler: async (args, output) => {
      const { directory, ownership } = locateSigningDirectory(args);
      const { installStatement } = await import('../../../lease/signing-files.ts');
      const text = readTextFile(args.file);
      const { statement, kid, removed } = await changeKeys(`${args.file} was not installed`, () =>
        installStatement(text, directory, Date.now(), ownership),
      );
      const lines = [
        `Version ${statement.version} is installed. ${kid} signs leases from now on; no restart is needed.`,
        ...removed.map((each) => `Deleted the private key ${each}.`),
      ];
      return await output.result(
        { issuer: statement.issuer, version: statement.version, kid, removed },
        lines.join('\n'),
      );
    },
  }),
  /** Works without a daemon. */
  defineCommand({
    command: 'show [file]',
    describe: 'Show the installed key statement, or a draft or signed statement in a file',
    builder: {
      file: {
        ...textOption('Draft or signed statement; default: the installed one', 'file'),
        group: positionalGroup,
      },
      root: textOption(
        'Root key that must have signed the file; default: those of the signing directory',
        'file',
      ),
    },
    examples: [
      ['latchkey lease statement show', 'what the issuer sends with each lease'],
      ['latchkey lease statement show statement-2.json', 'before it is signed'],
    ],
    handler: async (args, output) => {
      const { statement, isSigned } =
        args.file === undefined
          ? { statement: await readInstalled(locateSigningDirectory(args).directory), isSigned: true }
          : await readFile(args.file, () =>
              readRoots(args.root, () => locateSigningDirectory(args).directory),
            );
      const { thumbprintOf } = await import('../../../lease/documents.ts');
      const { issuer, version } = statement;
      const keys = statement.keys.map(({ jwk, notAfter }) => ({
        kid: thumbprintOf(jwk),
        not_after: formatDatetime(notAfter),
      }));
      return await output.result({ issuer, version, is_signed: isSigned, keys }, [
        formatFields({ issuer, version, signed: isSigned ? 'yes' : 'no, this is a draft' }),
        formatTable(keys.map((key) => ({ key: whole(key.kid), until: instant(key.not_after) }))),
      ]);
    },
  }),
];

async function readInstalled(directory: string): Promise<KeyStatement> {
  const { readSigningDirectory } = await import('../../../lease/signing-keys.ts');
  const { statement, faults } = await readSigningDirectory(directory);
  if (statement !== null) return statement;
  const reason = faults.length > 0 ? faults.join(' ') : `leases are not set up in ${directory}`;
  throw new CommandError([`latchkey: ${reason}`]);
}

async function readFile(
  file: string,
  roots: () => Promise<readonly PublicJwk[]>,
): Promise<{ statement: KeyStatement; isSigned: boolean }> {
  const text = readTextFile(file);
  if (text.startsWith('{')) {
    const { parseDraft } = await import('../../../lease/signing-files.ts');
    return { statement: await changeKeys(file, () => parseDraft(text, Date.now())), isSigned: false };
  }
  const { readStatement } = await import('../../../lease/documents.ts');
  const read = await readStatement(text, await roots());
  if (!read.ok) throw new CommandError([`latchkey: ${file}: ${read.problem.detail}`]);
  return { statement: read.value, isSigned: true };
}

/** The public keys by which a signed statement is verified. */
async function readRoots(file: string | undefined, directory: () => string): Promise<readonly PublicJwk[]> {
  if (file !== undefined) {
    const { readPrivateKey, readPublicKey } = await import('../../../lease/documents.ts');
    const text = readTextFile(file);
    const root = (await readPublicKey(text)) ?? (await readPrivateKey(text))?.jwk ?? null;
    if (root === null) throw new CommandError([`latchkey: ${file} is not a P-256 key (JWK)`]);
    return [root];
  }
  const { readSigningDirectory } = await import('../../../lease/signing-keys.ts');
  const { roots } = await readSigningDirectory(directory());
  if (roots.length === 0)
    throw new CommandError(['latchkey: no root key is known here: give --root root-1.pub.jwk']);
  return roots;
}
