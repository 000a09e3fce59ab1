import { resolve } from 'node:path';
import type { KeyStatement } from '../../../wire/lease.ts';
import { formatPath, quoteForShell, type Hint } from '../../hint.ts';
import { withNewFile } from '../lease/signing-directory.ts';

export interface WrittenDraft<Value> {
  readonly file: string;
  readonly version: number;
  readonly value: Value;
}

/** Writes a draft into a new file. `file`: undefined chooses the name from the version. */
export async function writeDraft<Value>(
  directory: string,
  file: string | undefined,
  make: () => Promise<{ draft: KeyStatement; value: Value }>,
): Promise<WrittenDraft<Value>> {
  const { formatDraft, nextVersion } = await import('../../../lease/signing-files.ts');
  const name = resolve(file ?? `statement-${await nextVersion(directory)}.json`);
  return await withNewFile(name, async () => {
    const { draft, value } = await make();
    return { text: formatDraft(draft), value: { file: name, version: draft.version, value } };
  });
}

/** What to do with a draft. */
export function explainDraft(file: string, hint: Hint): string {
  const signed = `${file.replace(/\.json$/, '')}.jwt`;
  const [draft, statement] = [file, signed].map((name) => quoteForShell(formatPath(name)));
  return [
    `The draft is ${draft}. Where a root key is:`,
    `  latchkey lease statement sign ${draft} --root root-1.jwk --output ${statement}`,
    'Then here:',
    `  ${hint(`lease statement install ${statement}`)}`,
  ].join('\n');
}
