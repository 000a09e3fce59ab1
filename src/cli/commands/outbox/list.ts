import { operationStates } from '../../../domain/outbox/operation.ts';
import { defineList } from '../../client/request.ts';
import { textOption } from '../../command.ts';
import { type Cell, instant, whole } from '../../format.ts';
import { formatState, needsDecision, outboxPath } from './operation.ts';
import { type ExplanationObject, explainedOperation, type OperationObject } from '../../../wire/operation.ts';

export const command = defineList({
  command: 'list',
  describe: 'List the changes that are not finished',
  builder: {
    state: { choices: operationStates, describe: 'Only in this state; default: all that are not finished' },
    key: textOption('Only unfinished changes of this license key'),
  },
  examples: [['latchkey outbox list --state dead', 'changes that the upstream refused']],
  list: {
    path: outboxPath,
    member: 'operations',
    item: explainedOperation,
    row: (each) => ({
      id: whole(each.id),
      change: each.kind,
      about: each.subject,
      state: formatState(each),
      attempts: each.attempts,
      'waits for': formatReason(each),
      until: formatEnd(each.explanation),
      'last error': each.last_error,
    }),
  },
  query: ({ state, key }) => ({ state, license_key: key, explain: true }),
});

type Wait = ExplanationObject['waits'][number];

/** Latchkey outbox show has the sentences. */
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

function formatReason(operation: OperationObject & { explanation: ExplanationObject }): string | null {
  if (needsDecision(operation)) return 'your decision';
  if (operation.state === 'in_flight') return 'the response';
  return operation.explanation.waits[0] === undefined ? null : reasons[operation.explanation.waits[0].cause];
}

function formatEnd({ waits }: ExplanationObject): Cell {
  return instant(waits[0]?.until);
}
