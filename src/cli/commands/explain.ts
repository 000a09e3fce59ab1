import { provenanceHeaderNames } from '../../domain/header-names.ts';
import { problemTypePrefix } from '../../domain/problem/problem.ts';
import { suggest } from '../../config/errors.ts';
import { defineCommand, positionalGroup, textOption, UsageError } from '../command.ts';
import { type Explanation, explanations } from '../explanation.ts';
import { type Cell, formatTable, type Shown, whole } from '../format.ts';

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
  handler: async ({ code }, output) => {
    const matches = code === undefined ? explanations : find(code);
    const [first] = matches;
    if (first === undefined) throw new UsageError(unknown(code ?? ''));
    return matches.length === 1
      ? await output.result(first, formatExplanation(first))
      : await output.result({ explanations: matches }, formatTable(matches.map(toRow)));
  },
});

function find(code: string): readonly Explanation[] {
  const word = nameIn(code);
  return explanations.filter(({ name, status }) => name === word || String(status) === word);
}

/** The name in a code as people copy it: a whole `type`, in capitals, or with hyphens. */
function nameIn(code: string): string {
  const word = code.trim().toLowerCase().replaceAll('-', '_');
  return word.startsWith(problemTypePrefix) ? word.slice(problemTypePrefix.length) : word;
}

function unknown(code: string): string {
  const word = nameIn(code);
  const names = explanations.map(({ name }) => name);
  const near = suggest(word, names);
  const like = near === undefined ? names.filter((name) => word !== '' && name.includes(word)) : [near];
  const hint = like.length > 0 ? `Did you mean ${like.join(' or ')}?` : 'All: latchkey explain';
  return `Unknown code: ${code}. ${hint}`;
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
