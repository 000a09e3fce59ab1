import { defineCommand, positional, textOption } from '../../command.ts';
import { hintFor } from '../../hint.ts';
import { changeKeys, locateSigningDirectory } from '../lease/signing-directory.ts';
import { readTextFile } from '../../values.ts';
import { explainDraft, writeDraft } from './draft.ts';

/** Works without a daemon. */
export const command = defineCommand({
  command: 'retire <kid>',
  describe: 'Write a draft of the key statement without a signing key',
  builder: {
    kid: positional('The key, as signing-key list shows it'),
    draft: textOption('A draft of signing-key add to change, so that one statement replaces the key', 'file'),
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
    const { parseDraft, retireKey } = await import('../../../lease/signing-files.ts');
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
});
