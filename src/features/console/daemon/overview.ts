import type { Status } from '../../../service/status.ts';
import type { ProcessParts } from '../../../daemon/compose.ts';
import { asSentence } from '../../../domain/text.ts';
import { findingsOf } from '../../../wire/findings.ts';
import { serializeStatus } from '../../../wire/status.ts';
import { optionsFor } from './options.ts';
import type { Attention, Overview } from '../service/overview.ts';

/** What the first page of the console shows, from the status. */
export async function overviewOf(
  { local, current, role }: Pick<ProcessParts, 'local' | 'current' | 'role'>,
  status: Status,
  startedAt: number,
): Promise<Overview> {
  const oldestAt = status.outbox === null ? null : (local?.reader.operations.oldestAt() ?? null);
  const attention = attentionOf(status, current.configuration.sync.maxPending);
  const products = status.role === 'agent' ? await namedProducts(current, role) : null;
  const { currency } = current.configuration.console;
  return { ...status, startedAt, currency, options: optionsFor(current), oldestAt, products, attention };
}

async function namedProducts(
  { products }: ProcessParts['current'],
  { productName }: Pick<ProcessParts['role'], 'productName'>,
): Promise<NonNullable<Overview['products']>> {
  const named = products.configured.map(async ({ id, productKey }) => ({
    productKey,
    name: await productName(id),
  }));
  return (await Promise.all(named)).flatMap(({ productKey, name }) =>
    name === null ? [] : [{ productKey, name }],
  );
}

/** What needs a person, in sentences. They have instants and no ages, so that they stay the same for a while. */
export function attentionOf(status: Status, maxPending: number | null): readonly Attention[] {
  return findingsOf(serializeStatus(status), maxPending).flatMap(
    ({ code, level, what, advice, command, page = null }) =>
      level === 'ok'
        ? []
        : [
            {
              code,
              level,
              text: asSentence(what),
              advice: asSentence(advice ?? ''),
              command: command === undefined ? null : `latchkey ${command}`,
              page,
            },
          ],
  );
}
