import { expect, it } from 'vitest';
import { z } from 'zod';
import { instant } from '../../src/wire/parameters.ts';
import { serializerOf } from '../../src/wire/shape.ts';

const line = z.object({ unit_price: z.int(), sold_at: instant.nullable() }).meta({ id: 'Line' });
const order = z.object({
  order_id: z.string(),
  created_at: instant,
  lines: z.array(line).readonly().describe('What was sold.'),
  first_line: line.nullable(),
  note_to_buyer: z.string().nullable().optional(),
});
const write = serializerOf(order);
const at = Date.UTC(2026, 0, 2, 3, 4, 5);

it('a value is written with the names of its shape, and instants as datetimes', () => {
  const sold = { unitPrice: 3, soldAt: null };
  const written = write({
    orderId: 'o',
    createdAt: at,
    lines: [sold],
    firstLine: { unitPrice: 3, soldAt: at },
  });
  expect(written).toEqual({
    order_id: 'o',
    created_at: '2026-01-02T03:04:05+00:00',
    lines: [{ unit_price: 3, sold_at: null }],
    first_line: { unit_price: 3, sold_at: '2026-01-02T03:04:05+00:00' },
  });
});

it('members are written in the order of the shape, whatever their order in the value', () => {
  const written = write({ noteToBuyer: null, firstLine: null, lines: [], createdAt: at, orderId: 'o' });
  expect(Object.keys(written)).toEqual(['order_id', 'created_at', 'lines', 'first_line', 'note_to_buyer']);
});

it('what the shape does not have is not written', () => {
  const value = { orderId: 'o', createdAt: at, lines: [], firstLine: null, secret: 's' };
  expect(JSON.stringify(write(value))).not.toContain('secret');
});
