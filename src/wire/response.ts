import { z } from 'zod';
import { type Problem, problemTypePrefix, type SeatHolder } from '../domain/problem/problem.ts';
import { problems, type ProblemCode } from '../domain/problem/problem-table.ts';
import { formatDatetime } from '../domain/time.ts';

const parameterFault = z
  .object({ parameter: z.string(), code: z.string(), detail: z.string() })
  .meta({ id: 'ParameterFault' });

/** A device that has a seat, in `no_seat_left`. */
export const seatHolder = z
  .object({
    activation_id: z.string(),
    device_name: z.string().nullable(),
    last_seen: z.string(),
    frees_at: z.string(),
  })
  .meta({ id: 'SeatHolder' });

function serializeHolder(holder: SeatHolder): z.infer<typeof seatHolder> {
  return {
    activation_id: holder.activationId,
    device_name: holder.deviceName,
    last_seen: formatDatetime(holder.lastSeenAt),
    frees_at: formatDatetime(holder.freesAt),
  };
}

// The keys of the table are its codes.
const codes = Object.keys(problems) as ProblemCode[];

/** An RFC 9457 problem. */
export const problemObject = z
  .object({
    type: z.string().regex(new RegExp(`^${problemTypePrefix}[a-z_]+$`)),
    title: z.string(),
    status: z.int(),
    detail: z.string(),
    code: z.enum(codes),
    request_id: z.string(),
    errors: z.array(parameterFault).readonly().optional(),
    reasons: z.array(z.string()).readonly().optional(),
    holders: z.array(seatHolder).optional(),
    frees_at: z.string().optional(),
    sequence: z.string().optional(),
    keys: z.string().optional(),
  })
  .meta({ id: 'Problem' });

export type ProblemObject = z.infer<typeof problemObject>;

/** Writes a problem according to RFC 9457. */
export function serializeProblem(problem: Problem, requestId: string): ProblemObject {
  const { title, status } = problems[problem.code];
  return {
    type: `${problemTypePrefix}${problem.code}`,
    title,
    status: problem.status ?? status,
    detail: problem.detail,
    code: problem.code,
    request_id: requestId,
    ...(problem.errors !== undefined && { errors: problem.errors }),
    ...(problem.reasons !== undefined && { reasons: problem.reasons }),
    ...(problem.holders !== undefined && { holders: problem.holders.map(serializeHolder) }),
    ...(problem.freesAt !== undefined && { frees_at: formatDatetime(problem.freesAt) }),
    ...problem.signed,
  };
}

/**
 * The error of a store that has no problems (RFC 9457). The store also sends `data: []`, which we leave out: it is
 * truthy in JavaScript, so a program that only checks `data` would accept each refusal as a valid key.
 */
export const refusalObject = z
  .object({ error: z.literal(true), message: z.string() })
  .meta({ id: 'Refusal' });

export type RefusalObject = z.infer<typeof refusalObject>;

export function serializeRefusal(message: string): RefusalObject {
  return { error: true, message };
}

const envelopes = new WeakMap<z.ZodType, z.ZodType>();

/** Wraps a schema in the single top-level member `data` (specification 4); named after what it holds. */
export function enveloped(data: z.ZodType): z.ZodType {
  const id = data.meta()?.id;
  const envelope =
    envelopes.get(data) ?? z.object({ data }).meta(id === undefined ? {} : { id: `${id}Envelope` });
  envelopes.set(data, envelope);
  return envelope;
}
