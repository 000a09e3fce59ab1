import { z } from 'zod';
import { type Cell, instant, whole } from '../../format.ts';

export const tokensPath = '/admin/v1/tokens';

export const token = z.object({
  token_id: z.string(),
  // Only when it was just issued.
  token: z.string().optional(),
  scopes: z.array(z.string()),
  product_key: z.string().nullable(),
  account_id: z.string().nullable(),
  label: z.string().nullable(),
  created_at: z.string(),
  last_used_at: z.string().nullable(),
  expires_at: z.string().nullable(),
});

export function tokenFields(shown: z.infer<typeof token>): Readonly<Record<string, Cell>> {
  return {
    id: whole(shown.token_id),
    scopes: shown.scopes.join(','),
    product: shown.product_key,
    account: shown.account_id,
    label: shown.label,
    created: instant(shown.created_at),
    'last used': instant(shown.last_used_at),
    expires: instant(shown.expires_at),
  };
}
