import { foldCouponCode } from '../../../../src/domain/checkout/coupon.ts';
import type { OperationResult, PushedOperation } from '../../../../src/domain/sync/push.ts';
import type { CommandOf, CommandResult, UseCaseName, Writer } from '../../../../src/service/writer.ts';

/** Who changed something last: an operation, or null: the seller. */
type Author = string | null;

/** A redemption that counts. */
type Booked = { code: string; overLimit: boolean; by: Author };

/**
 * The coupons of an authority, kept by rules of the simulation from what the authority says that it has done. Nothing of the
 * product decides here, so that a fault of the product cannot excuse itself.
 */
export class CouponBook {
  /** The redemptions that count, by order. */
  readonly open: Map<string, Booked> = new Map();
  /** Who voided the last redemption of an order. */
  readonly voided: Map<string, Author> = new Map();
  /** The operations of pushes that were applied, and the coupon that each has created. */
  readonly applied: Map<string, number | null> = new Map();
  /** What was found broken, also before a restore. */
  readonly broken: string[];
  /** `usage_limit`, by the code of the coupon. */
  readonly #limits = new Map<string, number | null>();

  constructor(broken: string[] = []) {
    this.broken = broken;
  }

  clone(): CouponBook {
    const other = new CouponBook(this.broken);
    for (const [order, booked] of this.open) other.open.set(order, booked);
    for (const [order, by] of this.voided) other.voided.set(order, by);
    for (const [id, couponId] of this.applied) other.applied.set(id, couponId);
    for (const [code, limit] of this.#limits) other.#limits.set(code, limit);
    return other;
  }

  countOf(code: string): number {
    return [...this.open.values()].filter((each) => each.code === foldCouponCode(code)).length;
  }

  /** A writer of the authority whose writes are entered here. */
  keep(writer: Writer): Writer {
    const write = async (name: UseCaseName, command: never, options: object = {}): Promise<unknown> => {
      const result: unknown = await writer.write(name, command, options);
      this.#enter({ name, command, result } as Written);
      return result;
    };
    // The name says what command and result are, which the compiler cannot follow through here.
    return { write: write as Writer['write'] };
  }

  #enter(written: Written): void {
    if (!written.result.ok || ('unchanged' in written.result && written.result.unchanged === true)) return;
    switch (written.name) {
      case 'applyPush':
        for (const [index, operation] of written.command.operations.entries()) {
          const said = written.result.value.results[index];
          if (operation.kind !== null && said !== undefined) this.#enterPushed(operation, said);
        }
        break;
      case 'createCoupon':
      case 'updateCoupon':
        this.#limits.set(foldCouponCode(written.result.value.code), written.result.value.usageLimit);
        break;
      case 'redeemCoupon':
        this.#redeem(written.command.order, { code: written.command.cart.code, overLimit: false, by: null });
        break;
      case 'voidRedemption':
        this.#void(written.command.order, null);
        break;
      default:
    }
  }

  #enterPushed(operation: PushedOperation, said: OperationResult): void {
    const { id, kind } = operation;
    const isKnown = this.applied.has(id);
    if (said.outcome !== 'applied') {
      if (isKnown) this.broken.push(`coupons: ${kind} ${id} was applied, and is ${said.outcome} later`);
      this.#checkRefusal(operation, said);
      return;
    }
    const couponId = said.couponId ?? null;
    if (isKnown) {
      const first = this.applied.get(id);
      if (first !== couponId)
        this.broken.push(`coupons: ${kind} ${id} has made the coupon ${first}, then ${couponId}`);
      return;
    }
    this.applied.set(id, couponId);
    if (operation.kind === 'redeem') {
      const { order, cart, provisional } = operation;
      const overLimit = said.overLimit === true;
      this.#redeem(order, { code: cart.code, overLimit, by: id }, provisional);
    } else if (operation.kind === 'void') {
      this.#void(operation.order, id);
    } else if (operation.kind === 'create_coupon') {
      const { code, usageLimit } = operation.terms;
      this.#limits.set(foldCouponCode(code), usageLimit);
    }
  }

  #redeem(order: string, { code: sent, overLimit, by }: Booked, provisional = false): void {
    // A second request for the order changes nothing.
    if (this.open.has(order)) return;
    const code = foldCouponCode(sent);
    const isOver = this.#isUsedUp(code);
    if (isOver && !provisional) this.broken.push(`limit: ${order} is redeemed beyond the limit of ${code}`);
    if (isOver !== overLimit && provisional)
      this.broken.push(`limit: ${order} is marked over_limit: ${overLimit}, and is beyond it: ${isOver}`);
    this.open.set(order, { code, overLimit, by });
  }

  #void(order: string, by: Author): void {
    if (!this.open.delete(order)) this.broken.push(`coupons: ${order} is voided, and was not redeemed`);
    this.voided.set(order, by);
  }

  #checkRefusal(operation: PushedOperation, said: OperationResult): void {
    if (said.outcome !== 'refused') return;
    if (operation.kind === 'void' && this.open.has(operation.order))
      this.broken.push(`coupons: ${operation.order} counts, and its void is refused: ${said.code}`);
    if (operation.kind !== 'redeem' || said.reasons?.join() !== 'usage_limit_reached') return;
    if (operation.provisional || !this.#isUsedUp(operation.cart.code))
      this.broken.push(`limit: ${operation.order} is refused for a limit that does not hold for it`);
  }

  #isUsedUp(code: string): boolean {
    const limit = this.#limits.get(foldCouponCode(code)) ?? null;
    return limit !== null && this.countOf(code) >= limit;
  }
}

type WrittenAs<Name extends UseCaseName> = {
  name: Name;
  command: CommandOf<Name>;
  result: CommandResult<Name>;
};

type Written =
  | WrittenAs<'applyPush'>
  | WrittenAs<'createCoupon'>
  | WrittenAs<'updateCoupon'>
  | WrittenAs<'redeemCoupon'>
  | WrittenAs<'voidRedemption'>;
