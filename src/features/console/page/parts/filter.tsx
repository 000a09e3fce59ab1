import type { ComponentChildren } from 'preact';
import { useDaemon, type Daemon } from '../daemon.tsx';
import { goTo, hrefTo } from '../router.ts';
import { Field, fieldText } from './action.tsx';
import { quoted } from './command.tsx';
import { type Place, Search } from './search.tsx';

/** A filter of a list: a value in the address, a parameter of the request, and an option of the command. */
export type Filter = {
  readonly name: string;
  readonly label: string;
  /** `live`: searches while a person types. `choice`: one of `options`. `links`: `choices` as links. */
  readonly kind: 'text' | 'search' | 'date' | 'live' | 'choice' | 'links';
  readonly example?: string;
  readonly choices?: readonly (readonly [value: string, text: string])[];
  readonly options?: (daemon: Daemon) => readonly (readonly [value: string, text: string])[];
  /** The parameters of the request; absent: the value under its name. */
  readonly sent?: (value: string) => Readonly<Record<string, string | null>>;
  /** The option of the command; absent: `--name VALUE`. */
  readonly option?: (value: string) => string;
};

export const productFilter: Filter = {
  name: 'product',
  label: 'Product',
  kind: 'choice',
  options: ({ productNames }) => (productNames.size === 0 ? [] : [['', 'All products'], ...productNames]),
  sent: (key) => ({ product_key: key }),
};

/** A day in the time zone of the browser. What is sent is its start, `later`. */
export function dayFilter(name: string, label: string, later: Later = {}): Filter {
  return {
    name,
    label,
    kind: 'date',
    sent: (day) => ({ [name]: instantOf(day, later) }),
    option: (day) => `--${name} ${quoted(instantOf(day, later) ?? day)}`,
  };
}

type Later = { readonly days?: number; readonly seconds?: number };

/** Null unless it is a date. */
function instantOf(date: string, { days = 0, seconds = 0 }: Later): string | null {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) return null;
  const at = new Date(`${date}T00:00:00`);
  at.setDate(at.getDate() + days);
  at.setSeconds(at.getSeconds() + seconds);
  return Number.isNaN(at.getTime()) ? null : at.toISOString();
}

/** The search, the fields, and then the choices. */
export function Filters({ filters, ...place }: Place & { filters: readonly Filter[] }) {
  const of = (...kinds: readonly Filter['kind'][]): readonly Filter[] =>
    filters.filter(({ kind }) => kinds.includes(kind));
  const fields = of('text', 'search', 'date');
  const choices = of('links', 'choice');
  return (
    <>
      {of('live').map((filter) => (
        <Search key={filter.name} {...place} {...filter} />
      ))}
      {fields.length + choices.length > 0 && (
        <div class="filters">
          {fields.length > 0 && (
            <FilterForm {...place} names={fields.map(({ name }) => name)}>
              {fields.map(({ kind, name, label, example }) => (
                <Field
                  key={name}
                  name={name}
                  label={label}
                  type={kind === 'date' || kind === 'search' ? kind : 'text'}
                  example={example}
                  value={place.query.get(name) ?? ''}
                />
              ))}
            </FilterForm>
          )}
          {choices.map((filter) =>
            filter.kind === 'choice' ? (
              <Selection key={filter.name} {...place} {...filter} />
            ) : (
              <Choice key={filter.name} {...place} {...filter} />
            ),
          )}
        </div>
      )}
    </>
  );
}

/**
 * A form whose fields are kept in the address, so that a filter survives a reload and can be sent to a colleague.
 * `names` are the names of the fields.
 */
export function FilterForm({
  path,
  query,
  names,
  children,
}: Place & { names: readonly string[]; children: ComponentChildren }) {
  const apply = (event: Event): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const kept = [...query].filter(([name]) => !names.includes(name));
    goTo(path, Object.fromEntries([...kept, ...names.map((name) => [name, fieldText(form, name)])]));
  };
  const isFiltered = names.some((name) => query.has(name));
  return (
    // The key resets the fields when the address changes.
    <form class="filters" role="search" aria-label="Filter" onSubmit={apply} key={query.toString()}>
      {children}
      <button type="submit">Filter</button>
      {isFiltered && (
        <a
          class="button"
          href={hrefTo(path, Object.fromEntries([...query].filter(([name]) => !names.includes(name))))}
        >
          Clear
        </a>
      )}
    </form>
  );
}

/** Links of which one is current; the value is kept in the address. */
export function Choice({
  path,
  query,
  name,
  label,
  choices = [],
}: Place & Pick<Filter, 'name' | 'label' | 'choices'>) {
  return (
    <nav class="choice" aria-label={label}>
      {choices.map(([value, text]) => (
        <a
          key={value}
          href={hrefTo(path, { ...Object.fromEntries(query), [name]: value })}
          aria-current={(query.get(name) ?? '') === value ? 'true' : undefined}
        >
          {text}
        </a>
      ))}
    </nav>
  );
}

/** Nothing is shown if there is no choice. */
function Selection({ path, query, name, label, options }: Place & Filter) {
  const daemon = useDaemon();
  const known = options?.(daemon) ?? [];
  const value = query.get(name) ?? '';
  if (known.length === 0) return null;
  // A link may have chosen something else.
  const all = known.some(([each]) => each === value) ? known : [...known, [value, value] as const];
  const choose = (event: Event): void =>
    goTo(path, { ...Object.fromEntries(query), [name]: (event.currentTarget as HTMLSelectElement).value });
  return (
    <select aria-label={label} onChange={choose}>
      {all.map(([each, text]) => (
        <option key={each} value={each} selected={each === value}>
          {text}
        </option>
      ))}
    </select>
  );
}
