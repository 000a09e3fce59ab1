import { operationStates } from '../../../domain/outbox/operation.ts';
import { counted } from '../../../domain/text.ts';
import { operationList, explainedOperation } from '../../../wire/operation.ts';
import { readPages, request } from '../../client/request.ts';
import {
  CommandError,
  defineCommand,
  type GlobalOptions,
  positional,
  textOption,
  UsageError,
} from '../../command.ts';
import { exitCode } from '../../exit-code.ts';
import { decisions, operationPath, outboxPath } from './operation.ts';

export const command = defineCommand({
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
    const read = await readPages({ limit: 0, offset: 0, all: true }, 'operations', (page) =>
      request(
        args,
        { path: outboxPath, query: { state, license_key: key, explain: true, ...page } },
        operationList,
      ),
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
});

/** Null: done; otherwise why the daemon refused. */
async function decide(options: GlobalOptions, id: string, decision: string): Promise<string | null> {
  try {
    await request(options, { method: 'POST', path: `${operationPath(id)}/${decision}` }, explainedOperation);
    return null;
  } catch (error) {
    if (error instanceof CommandError && error.refusal !== undefined) return error.refusal.detail;
    throw error;
  }
}
