import type { TokenObject } from '../../../wire/token.ts';
import { type Cell, instant, whole } from '../../format.ts';

export const tokensPath = '/admin/v1/tokens';

export function tokenFields(token: TokenObject): Readonly<Record<string, Cell>> {
  return {
    id: whole(token.token_id),
    scopes: token.scopes.join(','),
    product: token.product_key,
    account: token.account_id,
    label: token.label,
    created: instant(token.created_at),
    'last used': instant(token.last_used_at),
    expires: instant(token.expires_at),
  };
}
