import { counted } from '../../../domain/text.ts';
import { request } from '../../client/request.ts';
import type { GlobalOptions } from '../../command.ts';
import { type Hint, hintFor } from '../../hint.ts';
import { outboxPath } from '../outbox/operation.ts';
import { type OperationObject, operationList } from '../../../wire/operation.ts';

/** This many changes that wait for a decision are named. */
const maxNamed = 3;

/** Describes the changes of a license key that the store has not confirmed. Empty if the daemon does not list them. */
export async function describeUnconfirmed(
  options: GlobalOptions,
  licenseKey: string,
): Promise<readonly string[]> {
  const call = { path: outboxPath, query: { license_key: licenseKey, limit: 100 } };
  const result = await request(options, call, operationList);
  return result.ok ? formatUnconfirmed(result.data.operations, hintFor(options)) : [];
}

/** Changes that wait for a decision come first. */
export function formatUnconfirmed(operations: readonly OperationObject[], hint: Hint): readonly string[] {
  const undecided = operations.filter(needsDecision);
  const waiting = operations.filter((each) => !needsDecision(each));
  const has = (kind: string): boolean => waiting.some((each) => each.kind === kind);
  const counts = waiting.filter(({ kind }) => kind === 'usage' || kind === 'decrease').length;
  const more = undecided.length - maxNamed;
  return [
    ...undecided.slice(0, maxNamed).map((each) => formatUndecided(each, hint)),
    ...(more > 0
      ? [
          `${counted(more, 'more change waits', 'more changes wait')} for your decision: ${hint('outbox list')}`,
        ]
      : []),
    ...(has('enable')
      ? [
          'The enable is recorded and waits for the store. The key does not change here until the store agrees.',
        ]
      : []),
    ...(has('disable')
      ? ['The key is disabled here already. The change is sent to the store as soon as possible.']
      : []),
    ...(counts > 0 ? [`Recorded here, not confirmed by the store yet: ${formatCount(counts)}.`] : []),
  ];
}

function needsDecision({ state, held }: OperationObject): boolean {
  return held || state === 'dead' || state === 'conflicted';
}

function formatUndecided({ id, kind, held }: OperationObject, hint: Hint): string {
  const state = held ? 'may have been applied' : 'was not applied';
  return `A change (${kind}) ${state} and waits for your decision: ${hint(`outbox show ${id}`)}`;
}

function formatCount(count: number): string {
  return count < 100
    ? counted(count, 'change of the count', 'changes of the count')
    : 'at least 100 changes of the count';
}
