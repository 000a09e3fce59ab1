/* The third schema. */
export const schema3: string = /* sql */ `
-- A token for everything was of the default account in name only: it reaches every account.
UPDATE token SET account_id = NULL
  WHERE account_id = 'default' AND ' ' || scopes || ' ' LIKE '% admin %';

-- Orders that have used a coupon, as they were answered; a coupon of an agent's is in its mirror.
CREATE TABLE redemption (
  id INTEGER PRIMARY KEY,
  account_id TEXT NOT NULL,
  order_id TEXT NOT NULL,
  coupon_id INTEGER NOT NULL,
  cart TEXT NOT NULL,
  quote TEXT NOT NULL,
  redeemed_at INTEGER NOT NULL,
  UNIQUE (account_id, order_id)
) STRICT;
CREATE INDEX redemption_coupon ON redemption (account_id, coupon_id);

-- How often a coupon is redeemed, without counting: usage_limit is compared at each redemption.
CREATE TABLE redemption_count (
  account_id TEXT NOT NULL,
  coupon_id INTEGER NOT NULL,
  count INTEGER NOT NULL CHECK (count >= 0),
  PRIMARY KEY (account_id, coupon_id)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER redemption_added AFTER INSERT ON redemption BEGIN
  INSERT INTO redemption_count (account_id, coupon_id, count) VALUES (new.account_id, new.coupon_id, 1)
    ON CONFLICT (account_id, coupon_id) DO UPDATE SET count = count + 1;
END;
CREATE TRIGGER redemption_removed AFTER DELETE ON redemption BEGIN
  UPDATE redemption_count SET count = count - 1
    WHERE account_id = old.account_id AND coupon_id = old.coupon_id;
END;
CREATE TRIGGER redemption_renumbered AFTER UPDATE OF coupon_id ON redemption BEGIN
  UPDATE redemption_count SET count = count - 1
    WHERE account_id = old.account_id AND coupon_id = old.coupon_id;
  INSERT INTO redemption_count (account_id, coupon_id, count) VALUES (new.account_id, new.coupon_id, 1)
    ON CONFLICT (account_id, coupon_id) DO UPDATE SET count = count + 1;
END;
`;
