import { z } from 'zod';
import { problems, type ProblemCode } from '../../../domain/problem/problem-table.ts';
import type { Problem, SeatHolder } from '../../../domain/problem/problem.ts';
import { parseDatetime } from '../../../domain/time.ts';
import type { SignedAnswer, SignedSequence } from '../service/ports.ts';
import type { IssuerReply } from '../../../service/ports.ts';
import { seatHolder } from '../../../wire/response.ts';

/** What a reply means for the request that was sent. */
export type Reply =
  | { kind: 'answer'; answer: SignedAnswer }
  /** Nothing has changed within the wait. */
  | { kind: 'unchanged' }
  | { kind: 'out_of_sequence'; answer: SignedSequence }
  /** `isRecorded`: the issuer has recorded the request, so the next request has another number. */
  | { kind: 'refused'; problem: Problem; isRecorded: boolean }
  /** Perhaps not even received: the same document is sent again. `retryAfterS`: not before. */
  | { kind: 'away'; detail: string; retryAfterS: number | null };

const answers = z.object({
  data: z.union([
    z.object({ lease: z.string(), keys: z.string() }),
    z.object({ notice: z.string(), keys: z.string() }),
  ]),
});

const refusals = z.object({
  code: z.string(),
  detail: z.string().max(1_000).default(''),
  holders: z.array(seatHolder).max(10).optional(),
  frees_at: z.string().max(100).optional(),
});

function parseHolder(holder: z.infer<typeof seatHolder>): SeatHolder {
  return {
    activationId: holder.activation_id,
    deviceName: holder.device_name,
    lastSeenAt: parseDatetime(holder.last_seen) ?? 0,
    freesAt: parseDatetime(holder.frees_at) ?? 0,
  };
}

/** Without both documents, `out_of_sequence` proves nothing. */
const sequences = z.object({ sequence: z.string(), keys: z.string() });

/** Refusals that the issuer stores as the answer to the request. */
const recorded: ReadonlySet<string> = new Set<ProblemCode>([
  'no_seat_left',
  'no_move_left',
  'activation_blocked',
]);

/** Other refusals of the request itself: another request may be accepted. */
const passed: ReadonlySet<string> = new Set<ProblemCode>(['license_not_found', 'lease_request_invalid']);

export function readReply(reply: IssuerReply): Reply {
  if (reply.kind === 'failed') return { kind: 'away', detail: reply.detail, retryAfterS: null };
  const { status, body, retryAfterS } = reply;
  if (status === 204) return { kind: 'unchanged' };
  if (status === 200) {
    const read = answers.safeParse(body);
    if (read.success) return { kind: 'answer', answer: read.data.data };
  }
  const refusal = refusals.safeParse(body);
  if (!refusal.success) return { kind: 'away', detail: `HTTP ${status} without an answer`, retryAfterS };
  const { code, detail, holders, frees_at: freesAt } = refusal.data;
  if (code === 'out_of_sequence') {
    const read = sequences.safeParse(body);
    if (read.success) return { kind: 'out_of_sequence', answer: read.data };
  }
  const isRecorded = recorded.has(code);
  if (status >= 400 && status < 500 && (isRecorded || passed.has(code))) {
    const known = code as ProblemCode;
    const problem: Problem = {
      code: known,
      detail: detail || problems[known].title,
      ...(holders !== undefined && { holders: holders.map(parseHolder) }),
      ...(freesAt !== undefined && { freesAt: parseDatetime(freesAt) ?? 0 }),
    };
    return { kind: 'refused', isRecorded, problem };
  }
  return { kind: 'away', detail: `HTTP ${status}, ${code}: ${detail}`, retryAfterS };
}
