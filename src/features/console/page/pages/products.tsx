import type { OverviewObject } from '../../wire/console.ts';
import type { ProductObject } from '../../../../wire/catalogue.ts';
import { goTo } from '../router.ts';
import { useData } from '../use-data.ts';

/** The names of products by key. */
export type ProductNames = ReadonlyMap<string, string>;

/** The products of an authority; at most 100. Null: not read yet, or this is no authority. */
export function useProducts(role: OverviewObject['role']): readonly ProductObject[] | null {
  const path = role === 'authority' ? '/admin/v1/products?limit=100' : null;
  return useData<{ products: ProductObject[] }>(path).data?.products ?? null;
}

export function useProductNames(role: OverviewObject['role']): ProductNames {
  return new Map((useProducts(role) ?? []).map(({ product_key: key, name }) => [key, name]));
}

/** A choice of one product, which is kept in the address as `product`. Nothing is shown if no product is known. */
export function ProductChoice({
  names,
  path,
  query,
}: {
  names: ProductNames;
  path: readonly string[];
  query: URLSearchParams;
}) {
  if (names.size === 0) return null;
  const product = query.get('product') ?? '';
  const choose = (event: Event): void =>
    goTo(path, { ...Object.fromEntries(query), product: (event.currentTarget as HTMLSelectElement).value });
  return (
    <select aria-label="Product" onChange={choose}>
      <option value="">All products</option>
      {[...names].map(([key, name]) => (
        <option key={key} value={key} selected={key === product}>
          {name}
        </option>
      ))}
    </select>
  );
}
