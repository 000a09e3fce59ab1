import { type OperationState, operationStates } from '../../domain/outbox/operation.ts';
import { counted } from '../../domain/text.ts';
import {
  type ExplainedOperation,
  explainedOperation,
  type ExplanationObject,
  operationList,
  type OperationObject,
} from '../../wire/operation.ts';
import type { DaemonResponse } from '../client/call.ts';
import { defineList, defineRequest, pathOf, readPages, request, type View } from '../client/request.ts';
import {
  type Command,
  CommandError,
  defineCommand,
  type GlobalOptions,
  positional,
  textOption,
  UsageError,
} from '../command.ts';
import { exitCode } from '../exit-code.ts';
import {
  brief,
  type Cell,
  formatFields,
  instant,
  type Marked,
  type Shown,
  type Tone,
  toned,
  whole,
} from '../format.ts';
import type { Hint } from '../../domain/finding.ts';

export const outboxPath = '/admin/v1/outbox';

const decisions = ['retry', 'drop', 'confirm'] as const;

const operationPositional = positional('Id of the change', 'operation');

/** Shows a change, what its state means, and the possible decisions. */
const operationView: View<ExplainedOperation> = { schema: explainedOperation, show: formatOperation };

const tones: Record<OperationState, Tone> = {
  pending: 'warning',
  in_flight: 'warning',
  uncertain: 'warning',
  delivered: 'good',
  inferred: 'warning',
  conflicted: 'bad',
  dead: 'bad',
  cancelled: 'faint',
  dropped: 'faint',
};

type Wait = ExplanationObject['waits'][number];

/** What a change waits for, in few words; `latchkey outbox show` has the sentences. */
const reasons: Readonly<Record<Wait['cause'], string>> = {
  paused: 'sync resume',
  credential_missing: 'a credential',
  credential_refused: 'the right credential',
  upstream_away: 'the store',
  retry_after: 'a pause that the store asked for',
  reconcile_delay: 'the reconcile delay',
  behind: 'an earlier change',
  not_a_latchkey: 'a Latchkey',
  backoff: 'the next attempt',
  turn: 'its turn (sync.rate)',
};

export const commands = [
  defineList({
    command: 'list',
    describe: 'List the changes that are not finished',
    builder: {
      state: { choices: operationStates, describe: 'Only in this state; default: all that are not finished' },
      key: textOption('Only unfinished changes of this license key'),
      search: textOption(
        'Only those with this text in the key, the code, the order or the e-mail address, from three characters on',
      ),
    },
    examples: [['latchkey outbox list --state dead', 'changes that the upstream refused']],
    list: {
      path: outboxPath,
      member: 'operations',
      item: explainedOperation,
      row: (each) => ({
        id: whole(each.id),
        change: formatChange(each),
        about: each.subject,
        state: formatState(each),
        attempts: each.attempts,
        'waits for': formatReason(each),
        until: instant(each.explanation.waits[0]?.until),
        'last error': each.last_error,
      }),
    },
    query: ({ state, key, search }) => ({ state, license_key: key, search, explain: true }),
  }),
  defineRequest({
    command: 'show <id>',
    describe: 'Show a change',
    builder: { id: operationPositional },
    examples: [['latchkey outbox show OPERATION_ID', 'its state, and what each decision would do']],
    request: ({ id }) => ({ path: pathOf(outboxPath, id) }),
    view: operationView,
  }),
  defineDecision(
    'retry',
    'Send a change again that is dead, conflicted or uncertain',
    'when the cause of the refusal is fixed, or it was not applied',
  ),
  defineDecision('drop', 'Give up a change: it is not sent any more', 'when it should no longer be applied'),
  defineDecision(
    'confirm',
    'Record that a change was applied at the upstream',
    'when the store shows that it was applied',
  ),
  defineCommand({
    command: 'decide <decision>',
    describe: 'Retry, drop or confirm all changes of a state or a license key',
    builder: {
      decision: { ...positional('What to do with each of them'), choices: decisions },
      state: { choices: operationStates, describe: 'The changes in this state' },
      key: textOption('The changes of this license key'),
      all: { type: 'boolean', describe: 'All changes that are not finished' },
    },
    examples: [
      ['latchkey outbox decide retry --state dead', 'when the cause of all refusals is fixed'],
      ['latchkey outbox decide drop --key LICENSE_KEY', 'when the key should not be changed any more'],
    ],
    epilogue:
      'Changes for which the decision is not possible, and changes that arrive meanwhile, stay as they are.',
    handler: async (args, output) => {
      const { decision, state, key, all } = args;
      if (state === undefined && key === undefined && all !== true)
        throw new UsageError('Say which changes: --state STATE, --key KEY or --all');
      const query = { state, license_key: key, explain: true };
      const read = await readPages({ limit: 0, offset: 0, all: true }, 'operations', (page) =>
        request(args, { path: outboxPath, query: { ...query, ...page } }, operationList),
      );
      const possible = read.items.filter(
        ({ explanation }) => (explanation?.decisions[decision] ?? null) !== null,
      );
      const refused = new Map<string, string>();
      for (const { id } of possible) {
        const reason = await decide(args, id, decision);
        if (reason !== null) refused.set(id, reason);
      }
      const decided = possible.length - refused.size;
      const others = read.items.length - possible.length;
      const lines = [
        `${decision}: ${counted(decided, 'change')}.`,
        ...(others > 0 ? [`Not possible for ${counted(others, 'change')}.`] : []),
        ...[...refused].map(([id, reason]) => `${id}: ${reason}`),
      ];
      await output.result(
        { decided, not_possible: others, refused: [...refused].map(([id, detail]) => ({ id, detail })) },
        lines.join('\n'),
      );
      return refused.size === 0 ? exitCode.done : exitCode.failed;
    },
  }),
];

/** Declares a command that decides what happens to a change. */
function defineDecision(decision: (typeof decisions)[number], describe: string, meaning: string): Command {
  return defineRequest({
    command: `${decision} <id>`,
    describe,
    builder: { id: operationPositional },
    examples: [[`latchkey outbox ${decision} OPERATION_ID`, meaning]],
    request: ({ id }) => ({ method: 'POST', path: `${pathOf(outboxPath, id)}/${decision}` }),
    view: operationView,
  });
}

/** Whether nothing happens to a change until a person decides. */
export function needsDecision({ state, held }: OperationObject): boolean {
  return held || state === 'dead' || state === 'conflicted';
}

function formatChange({ kind, amount }: OperationObject): string {
  return amount > 1 ? `${kind} of ${amount}` : kind;
}

function formatState(operation: OperationObject): Marked {
  const { state, held } = operation;
  return toned(held ? `${state}, held` : state, needsDecision(operation) ? 'bad' : tones[state]);
}

function formatOperation(operation: ExplainedOperation, _answer: DaemonResponse, hint: Hint): Shown {
  const { meaning, waits, shown: license, expected_uses: expected } = operation.explanation;
  const base = operation.base_uses === null ? null : counted(operation.base_uses, 'use');
  const fields = formatFields({
    id: whole(operation.id),
    change: formatChange(operation),
    [operation.license_key === null ? 'about' : 'license key']: whole(operation.subject),
    state: formatState(operation),
    meaning,
    ...Object.fromEntries(waits.map(formatWait)),
    created: instant(operation.created_at),
    attempts: operation.attempts,
    'sent on': expected === null ? base : `${base}; applied alone, it makes ${counted(expected, 'use')}`,
    'store said':
      license === null
        ? null
        : [
            `${counted(license.uses, 'use')}, ${license.enabled ? 'enabled' : 'disabled'}, `,
            brief(license.at),
          ],
    'last error': operation.last_error,
  });
  const possible = decisions.filter((decision) => operation.explanation.decisions[decision] !== null);
  if (possible.length === 0) return fields;
  return [
    fields,
    'What you can do (recorded in the audit log):',
    formatFields(
      Object.fromEntries(possible.map((decision) => [decision, operation.explanation.decisions[decision]])),
    ),
    possible.map((decision) => hint(`outbox ${decision} ${operation.id}`)).join('\n'),
  ];
}

/** Several waits need different field names: all but the first have blanks. */
function formatWait({ detail, until }: Wait, index: number): [string, Cell] {
  const name = index === 0 ? 'waits for' : ' '.repeat(index);
  return [name, until === null ? detail : [`${detail}: `, brief(until)]];
}

function formatReason(operation: OperationObject & { explanation: ExplanationObject }): string | null {
  if (needsDecision(operation)) return 'your decision';
  if (operation.state === 'in_flight') return 'the response';
  const [wait] = operation.explanation.waits;
  return wait === undefined ? null : reasons[wait.cause];
}

/** Null: done; otherwise why the daemon refused. */
async function decide(options: GlobalOptions, id: string, decision: string): Promise<string | null> {
  try {
    await request(
      options,
      { method: 'POST', path: `${pathOf(outboxPath, id)}/${decision}` },
      explainedOperation,
    );
    return null;
  } catch (error) {
    if (error instanceof CommandError && error.refusal !== undefined) return error.refusal.detail;
    throw error;
  }
}
