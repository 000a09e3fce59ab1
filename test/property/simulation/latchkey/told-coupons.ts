/** What a caller knows of an order: it has redeemed a coupon, it has not, or that is open. */
type Known = 'redeemed' | 'none' | 'unsure';

type Asked = { known: Known; underWay: number; isMixed: boolean };

/** What the callers at a site were told about coupons. */
export class ToldCoupons {
  /** The codes of new coupons, by the ids that were answered. */
  readonly created: Map<number, string> = new Map();
  readonly #orders = new Map<string, Asked>();

  clone(): ToldCoupons {
    const other = new ToldCoupons();
    for (const [id, code] of this.created) other.created.set(id, code);
    for (const [order, { known }] of this.#orders)
      other.#orders.set(order, { known, underWay: 0, isMixed: false });
    return other;
  }

  *orders(): Iterable<{ order: string; known: Known }> {
    for (const [order, { known }] of this.#orders) yield { order, known };
  }

  /** The process ends: what was asked for is not answered any more. */
  endRequests(): void {
    for (const asked of this.#orders.values()) Object.assign(asked, { underWay: 0, isMixed: false });
  }

  /** A request about an order begins. Call the returned function with what its answer says; null: nothing new. */
  begin(order: string): (known: Known | null) => void {
    const asked = this.#orders.get(order) ?? { known: 'unsure', underWay: 0, isMixed: false };
    this.#orders.set(order, asked);
    const before = asked.known;
    asked.underWay += 1;
    // Nobody knows which of two requests was carried out last.
    asked.isMixed ||= asked.underWay > 1;
    asked.known = 'unsure';
    return (known) => {
      asked.underWay -= 1;
      if (!asked.isMixed) asked.known = known ?? before;
      if (asked.underWay === 0) asked.isMixed = false;
    };
  }
}
