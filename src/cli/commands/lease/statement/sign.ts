import { CommandError, defineCommand, positional, textOption } from '../../../command.ts';
import { changeKeys, withNewFile } from '../signing-directory.ts';
import { readTextFile } from '../../../values.ts';

/** Works anywhere, without a daemon and without a configuration. */
export const command = defineCommand({
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
    const { parseDraft, signDraft } = await import('../../../../lease/signing-files.ts');
    const { readPrivateKey, readPublicKey } = await import('../../../../lease/documents.ts');
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
});
