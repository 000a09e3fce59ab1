import { z } from 'zod';
import type { Route } from '../route.ts';

/** What stands in a path: by what is before it, since an id is of what it follows. */
const described: Readonly<Record<string, z.ZodType>> = {
  'accounts/:id': z.string().meta({ description: 'The id of an account.' }),
  'products/:id': z.string().meta({ description: 'The key of a product.' }),
  'collections/:id': z.string().meta({ description: 'The id of a collection.' }),
  'purchases/:id': z.string().meta({ description: 'The id of a purchase.' }),
  'coupons/:id': z.int().meta({
    description: 'The id of a coupon; of one that an agent’s upstream has not seen yet it is negative.',
  }),
  'redemptions/:order': z.string().meta({ description: 'The order that redeemed a coupon.' }),
  'licenses/:key': z.string().meta({ description: 'A license key, in any spelling.' }),
  'outbox/:id': z.string().meta({ description: 'The id of an operation.' }),
  'tokens/:id': z.string().meta({ description: 'The id of a token.' }),
  'audit/:id': z.int().min(0).meta({ description: 'The number of an act.' }),
};

/** The parameters of a route's path; null where it has none. */
export function describePath({ path }: Route): z.ZodObject | null {
  const named = [...path.matchAll(/(?<![^/])[^/]+\/:(\w+)/g)].map(([place, name = '']) => [
    name,
    described[place],
  ]);
  return named.length === 0 ? null : z.object(Object.fromEntries(named));
}
