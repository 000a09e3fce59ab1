import type { NotAppliedReason } from '../../domain/outbox/outcome.ts';
import type { CouponPage } from '../../service/ports.ts';
import type { Answered } from '../exchange.ts';
import type { JsonObject, Parsed } from '../json.ts';

/** What a request asked for. */
export type RequestKind = 'verify' | 'change' | 'createCoupon' | 'listCoupons' | 'getCoupon';

/** A whole answer, and its body where that is a JSON object. */
export type DialectAnswer = Pick<Answered, 'status' | 'headers' | 'text'> & { body: JsonObject | null };

/** Why a request was certainly not applied, and what the answer was, for people. */
export type DialectRefusal = { reason: NotAppliedReason; what: string };

/** How a store speaks where the specification leaves it open. */
export type Dialect = {
  /** Understands what only this dialect says so; null: the answer is read as the specification has it. */
  refusalOf(answer: DialectAnswer, request: RequestKind): DialectRefusal | null;
  readCoupons(body: unknown): Parsed<CouponPage>;
};
