import { provenanceHeaderNames } from '../../domain/header-names.ts';
import { problemTypePrefix } from '../../domain/problem/problem.ts';
import { suggest } from '../../config/errors.ts';
import { defineCommand, positionalGroup, textOption, UsageError } from '../command.ts';
import { exitCode } from '../exit-code.ts';
import { type Explanation, explanations } from '../explanation.ts';
import { type Cell, formatTable, type Shown, whole } from '../format.ts';
import type { Output } from '../output.ts';

/** Works without a daemon. */
export const command = defineCommand({
  command: 'explain [code]',
  describe: 'Explain an error code, a state or an exit code',
  builder: {
    code: {
      ...textOption('The code; without it, all are listed'),
      group: positionalGroup,
      suggestions: explanations.map(({ name, title }) => ({ term: name, meaning: title })),
    },
  },
  examples: [
    ['latchkey explain storage_full', 'a code, or the whole type of a problem'],
    ['latchkey explain 503', 'all problems with this HTTP status'],
    ['latchkey explain uncertain', 'a state of a change, as in outbox list'],
    ['latchkey explain 78', 'an exit code'],
  ],
  handler: async ({ code, json }, output) => {
    const found = code === undefined ? explanations : find(code);
    const [first] = found;
    if (first === undefined) throw new UsageError(unknown(code ?? ''));
    await show(found.length === 1 ? first : found, { output, json: json === true });
    return exitCode.done;
  },
});

function find(given: string): readonly Explanation[] {
  const word = nameIn(given);
  return explanations.filter(({ name, status }) => name === word || String(status) === word);
}

/** The name in a code as people copy it: a whole `type`, in capitals, or with hyphens. */
function nameIn(given: string): string {
  const word = given.trim().toLowerCase().replaceAll('-', '_');
  return word.startsWith(problemTypePrefix) ? word.slice(problemTypePrefix.length) : word;
}

function unknown(given: string): string {
  const word = nameIn(given);
  const names = explanations.map(({ name }) => name);
  const near = suggest(word, names);
  const like = near === undefined ? names.filter((name) => word !== '' && name.includes(word)) : [near];
  const hint = like.length > 0 ? `Did you mean ${like.join(' or ')}?` : 'All: latchkey explain';
  return `Unknown code: ${given}. ${hint}`;
}

async function show(
  found: Explanation | readonly Explanation[],
  { output, json }: { output: Output; json: boolean },
): Promise<void> {
  if ('kind' in found) {
    if (json) output.printJson(found);
    else await output.show(formatExplanation(found));
    return;
  }
  if (json) output.printJson({ explanations: found });
  else await output.show(formatTable(found.map(toRow)));
}

function toRow(each: Explanation): Record<string, Cell> {
  return { code: whole(each.name), of: kindOf(each), is: each.title };
}

function formatExplanation(explanation: Explanation): Shown {
  const { name, title, cause, remedy } = explanation;
  return [
    `${name} (${kindOf(explanation)}): ${title}`,
    ...(cause === null ? [] : [`Why: ${cause}`]),
    ...(remedy === null ? [] : [`What to do: ${remedy}`]),
  ];
}

function kindOf({ kind, status }: Explanation): string {
  return kind === 'problem' ? `HTTP ${status}` : ofWhat[kind];
}

const ofWhat = {
  state: 'a change',
  freshness: provenanceHeaderNames.freshness,
  readiness: '/readyz',
  status: '/statusz',
  exit_code: 'exit code',
} as const;
