import { formatDatetime } from '../../../../domain/time.ts';
import type { KeyStatement, PublicJwk } from '../../../../wire/lease.ts';
import { CommandError, defineCommand, positionalGroup, textOption } from '../../../command.ts';
import { formatFields, formatTable, instant, whole } from '../../../format.ts';
import { changeKeys, locateSigningDirectory } from '../signing-directory.ts';
import { readTextFile } from '../../../values.ts';

/** Works without a daemon. */
export const command = defineCommand({
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
        : await readFile(args.file, () => readRoots(args.root, () => locateSigningDirectory(args).directory));
    const { thumbprintOf } = await import('../../../../lease/documents.ts');
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
});

async function readInstalled(directory: string): Promise<KeyStatement> {
  const { readSigningDirectory } = await import('../../../../lease/signing-keys.ts');
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
    const { parseDraft } = await import('../../../../lease/signing-files.ts');
    return { statement: await changeKeys(file, () => parseDraft(text, Date.now())), isSigned: false };
  }
  const { readStatement } = await import('../../../../lease/documents.ts');
  const read = await readStatement(text, await roots());
  if (!read.ok) throw new CommandError([`latchkey: ${file}: ${read.problem.detail}`]);
  return { statement: read.value, isSigned: true };
}

/** The public keys by which a signed statement is verified. */
async function readRoots(file: string | undefined, directory: () => string): Promise<readonly PublicJwk[]> {
  if (file !== undefined) {
    const { readPrivateKey, readPublicKey } = await import('../../../../lease/documents.ts');
    const text = readTextFile(file);
    const root = (await readPublicKey(text)) ?? (await readPrivateKey(text))?.jwk ?? null;
    if (root === null) throw new CommandError([`latchkey: ${file} is not a P-256 key (JWK)`]);
    return [root];
  }
  const { readSigningDirectory } = await import('../../../../lease/signing-keys.ts');
  const { roots } = await readSigningDirectory(directory());
  if (roots.length === 0)
    throw new CommandError(['latchkey: no root key is known here: give --root root-1.pub.jwk']);
  return roots;
}
