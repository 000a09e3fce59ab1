import { z } from 'zod';
import { homeDirectory } from '../../config/defaults.ts';
import { dataOrNull } from '../../cli/client/request.ts';
import { type Called, findCommand, knownOptions, splitLine } from '../../cli/command-line.ts';
import {
  type Builder,
  type Command,
  defineCommand,
  type GlobalOptions,
  globalOptions,
  nameOf,
  positionalGroup,
  programOptions,
  type Term,
  type ResourceName,
  UsageError,
  type Value,
} from '../../cli/command.ts';
import { commands as entries } from '../../cli/commands.ts';
import { defineShell } from './completion-scripts.ts';

/** What may come next: words, or a path that the shell completes. */
interface Completions {
  readonly kind: 'words' | 'file' | 'folder';
  readonly terms: readonly Term[];
}

const nothing: Completions = { kind: 'words', terms: [] };

interface Typed {
  readonly before: readonly string[];
  readonly current: string;
  readonly options: Builder;
}

/** Where things are listed: the path, the member of the response, the id of a thing, and what describes it. */
type Source = readonly [path: string, member: string, id: string, describedBy: readonly string[]];

const sources: Readonly<Record<ResourceName, Source>> = {
  account: ['/admin/v1/accounts', 'accounts', 'account_id', ['name']],
  act: ['/admin/v1/audit', 'acts', 'id', ['act', 'subject']],
  agent: ['/admin/v1/agents', 'agents', 'number', ['product_key', 'seen_at']],
  collection: ['/admin/v1/collections', 'collections', 'collection_id', ['name']],
  coupon: ['/agent/v1/coupons', 'coupons', 'id', ['code', 'state']],
  operation: ['/admin/v1/outbox', 'operations', 'id', ['kind', 'state']],
  product: ['/admin/v1/products', 'products', 'product_key', ['name']],
  purchase: ['/admin/v1/purchases', 'purchases', 'purchase_id', ['date']],
  token: ['/admin/v1/tokens', 'tokens', 'token_id', ['label', 'scopes']],
  webhook: ['/admin/v1/webhooks', 'webhooks', 'webhook_id', ['url', 'state']],
};

/** People do not wait longer for the Tab key. */
const timeoutMs = 1000;

const maxThings = 100;

export const commands = [
  defineShell('bash'),
  defineShell('zsh'),
  defineShell('fish'),
  defineShell('powershell'),
  /** Called by the scripts of the shells. Prints nothing for an unknown command, because people are typing. */
  defineCommand({
    command: 'next [words..]',
    describe: 'List what can come next on a command line; the completion scripts call it',
    builder: {
      words: {
        type: 'string',
        array: true,
        default: [] as string[],
        mayBeBlank: true,
        group: positionalGroup,
        describe: 'The command line after the word latchkey, up to the cursor',
      },
      quoted: { type: 'boolean', describe: 'The words are quoted as in bash' },
      blank: { type: 'boolean', describe: 'An empty word follows, which PowerShell cannot pass' },
    },
    examples: [['latchkey completion next -- outbox re', 'what may replace re']],
    epilogue:
      'The first line is words, file or folder. Then each word has a line, and a line that describes it.',
    handler: async (args, output) => {
      const given = args.blank ? [...args.words, ''] : args.words;
      const words = given.map((word) => expandHome(args.quoted ? unquote(word) : word));
      const { kind, terms } = await complete(words);
      const lines = [kind, ...terms.flatMap(({ term, meaning }) => [term, meaning])];
      return await output.result({ kind, words: terms }, lines.join('\n'));
    },
  }),
];

/** Removes the quotes and backslashes of a word, as bash does. */
function unquote(word: string): string {
  return word.replaceAll(
    /'([^']*)'?|"((?:\\.|[^"\\])*)"?|\\(.)/g,
    (_, single?: string, double?: string, escaped?: string) =>
      single ?? double?.replaceAll(/\\(["\\$`])/g, '$1') ?? escaped ?? '',
  );
}

function expandHome(word: string): string {
  return word.replace(/^~(?=\/|$)/, (tilde) => homeDirectory() ?? tilde);
}

/** Completes the last of these words. An option with `=` is completed by its value alone. */
async function complete(words: readonly string[]): Promise<Completions> {
  const before = words.slice(0, -1);
  const current = words.at(-1) ?? '';
  const called = await findOrNull(splitLine(before, { ...globalOptions, ...programOptions }).words);
  if (called === null) return nothing;
  const { found } = called;
  const command = found !== null && 'handler' in found ? found : null;
  const options = found === null || command !== null ? knownOptions(command) : globalOptions;
  const typed = { before, current, options };
  const isAfterDashes = before.includes('--');
  const option = isAfterDashes ? undefined : findOpenOption(typed);
  if (option !== undefined) return await completeValue(option, typed);
  if (current.startsWith('-') && !isAfterDashes) return { kind: 'words', terms: optionTerms(typed) };
  if (command !== null) return await completePositional(typed, called, command);
  return await completeCommand(called);
}

async function findOrNull(words: readonly string[]): Promise<Called | null> {
  try {
    return await findCommand(words, entries);
  } catch (error) {
    if (error instanceof UsageError) return null;
    throw error;
  }
}

function findOpenOption({ before, current, options }: Typed): Value | undefined {
  const name = /^--([\w-]+)=/.exec(current)?.[1] ?? /^--([\w-]+)$/.exec(before.at(-1) ?? '')?.[1];
  const value = options[name ?? ''];
  return value?.type === 'boolean' ? undefined : value;
}

function optionTerms({ before, options }: Typed): readonly Term[] {
  return Object.entries(options)
    .filter(([name]) => !before.some((word) => word === `--${name}` || word.startsWith(`--${name}=`)))
    .map(([name, { describe }]) => ({ term: `--${name}`, meaning: describe }));
}

async function completePositional(typed: Typed, called: Called, { builder }: Command): Promise<Completions> {
  const words = splitLine(typed.before, typed.options).words.slice(called.words.length);
  const positionals = Object.values(builder).filter(({ group }) => group === positionalGroup);
  const last = positionals.at(-1);
  const value = positionals[words.length] ?? (last?.array === true ? last : undefined);
  if (value === undefined) {
    return { kind: 'words', terms: typed.current === '' ? optionTerms(typed) : [] };
  }
  if (value.names !== 'command') return await completeValue(value, typed);
  const named = await findOrNull(words);
  return named === null ? nothing : await completeCommand(named);
}

async function completeCommand({ found }: Called): Promise<Completions> {
  if (found === null) {
    const terms = entries.map(async ({ name, describe, load }) => ({
      term: name,
      meaning: describe ?? (await load()).describe,
    }));
    return { kind: 'words', terms: await Promise.all(terms) };
  }
  if ('handler' in found) return nothing;
  const terms = found.commands.map((each) => ({ term: nameOf(each), meaning: each.describe }));
  return { kind: 'words', terms };
}

async function completeValue(
  { choices, suggestions, names }: Value,
  { before, options }: Typed,
): Promise<Completions> {
  if (choices !== undefined) {
    return { kind: 'words', terms: choices.map((choice) => ({ term: String(choice), meaning: '' })) };
  }
  if (suggestions !== undefined) return { kind: 'words', terms: suggestions };
  if (names === undefined || names === 'command') return nothing;
  if (names === 'file' || names === 'folder') return { kind: names, terms: [] };
  const { config, stateDir } = splitLine(before, options).options as GlobalOptions;
  return { kind: 'words', terms: await listResources({ config, stateDir }, names) };
}

/** The ids that the running daemon has; none if it does not respond. */
async function listResources(options: GlobalOptions, name: ResourceName): Promise<readonly Term[]> {
  const [path, member, id, describedBy] = sources[name];
  const schema = z.object({ [member]: z.array(z.record(z.string(), z.unknown())) });
  const data = await dataOrNull(options, { path, query: { limit: maxThings }, timeoutMs }, schema);
  return (data?.[member] ?? []).map((thing) => ({
    term: String(thing[id]),
    meaning: describedBy
      .map((key) => formatMember(thing[key]))
      .join(' ')
      .trim(),
  }));
}

function formatMember(value: unknown): string {
  if (Array.isArray(value)) return value.map(formatMember).join(',');
  return typeof value === 'string' ? value.replaceAll(/\s+/g, ' ') : '';
}
