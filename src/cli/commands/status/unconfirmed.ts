import { z } from 'zod';
import { inquire } from '../../client/ask.ts';
import type { GlobalOptions } from '../../command.ts';
import { type Hint, hintFor } from '../../hint.ts';
import { operation, type Operation, outboxPath } from '../outbox.ts';
import { counted } from '../../../domain/text.ts';

/** How many changes that wait for a person are named one by one. */
const namedOnes = 3;

const schema = z.object({ operations: z.array(operation) });

/** Says in words what of a license key the store has not confirmed; nothing where that cannot be asked. */
export async function sayUnconfirmed(options: GlobalOptions, licenseKey: string): Promise<readonly string[]> {
  const request = { path: outboxPath, query: { license_key: licenseKey, limit: 100 } };
  const asked = await inquire(options, request, schema);
  return asked.ok ? formatUnconfirmed(asked.data.operations, hintFor(options)) : [];
}

/** The sentences: what waits for a person before what goes on by itself. */
export function formatUnconfirmed(operations: readonly Operation[], hint: Hint): readonly string[] {
  const forPerson = operations.filter(isForPerson);
  const waiting = operations.filter((each) => !isForPerson(each));
  const has = (kind: string): boolean => waiting.some((each) => each.kind === kind);
  const counts = waiting.filter(({ kind }) => kind === 'usage' || kind === 'decrease').length;
  const more = forPerson.length - namedOnes;
  return [
    ...forPerson.slice(0, namedOnes).map((each) => formatForPerson(each, hint)),
    ...(more > 0 ? [`So ${more === 1 ? 'does' : 'do'} ${more} more: ${hint('outbox list')}`] : []),
    ...(has('enable')
      ? [
          'The enable is recorded and waits for the store: the key stays as it is here until the store agrees.',
        ]
      : []),
    ...(has('disable')
      ? ['The disable holds here already, and is sent to the store as soon as it can be.']
      : []),
    ...(counts > 0 ? [`Recorded here, and not confirmed by the store yet: ${formatCount(counts)}.`] : []),
  ];
}

function isForPerson({ state, held }: Operation): boolean {
  return held || state === 'dead' || state === 'conflicted';
}

function formatForPerson({ id, kind, held }: Operation, hint: Hint): string {
  const fate = held ? 'may have been applied, and is held' : 'was not applied, and waits';
  return `A change (${kind}) ${fate} for your decision: ${hint(`outbox show ${id}`)}`;
}

function formatCount(count: number): string {
  return count < 100
    ? counted(count, 'change of the count', 'changes of the count')
    : 'at least 100 changes of the count';
}
