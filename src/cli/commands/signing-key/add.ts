import { formatDatetime } from '../../../domain/time.ts';
import { defineCommand, textOption } from '../../command.ts';
import { hintFor } from '../../hint.ts';
import { changeKeys, locateSigningDirectory } from '../lease/signing-directory.ts';
import { explainDraft, writeDraft } from './draft.ts';

/** Works without a daemon. */
export const command = defineCommand({
  command: 'add',
  describe: 'Make a signing key for 400 days, and write a draft of the key statement that lists it',
  builder: {
    output: textOption('New file for the draft; default: statement-VERSION.json', 'file'),
  },
  examples: [['latchkey signing-key add', 'then sign the draft where a root key is, and install it']],
  handler: async (args, output) => {
    const { directory, ownership } = locateSigningDirectory(args);
    const { addKey } = await import('../../../lease/signing-files.ts');
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
});
