// The types of preact.js, as far as our pages use it.

export type Node = any;
export function h(type: any, props?: any, ...children: any[]): Node;
export function html(parts: TemplateStringsArray, ...values: any[]): Node;
export function render(node: Node, parent: Element): void;
export const Fragment: any;
export class Component<P = any, S = any> {
  constructor(props?: P);
  props: P;
  state: S;
  base: Element;
  setState(change: Partial<S> | ((before: S) => Partial<S>)): void;
  forceUpdate(): void;
}
export type Ref<T> = { current: T };
export function createRef<T>(): Ref<T | null>;
export function useState<T>(first: T | (() => T)): [T, (next: T | ((before: T) => T)) => void];
export function useState<T>(): [T | undefined, (next?: T | ((before?: T) => T | undefined)) => void];
export function useReducer<S, A>(step: (state: S, act: A) => S, first: S): [S, (act: A) => void];
export function useEffect(effect: () => void | (() => void), on?: any[]): void;
export function useLayoutEffect(effect: () => void | (() => void), on?: any[]): void;
export function useRef<T>(first: T): Ref<T>;
export function useMemo<T>(make: () => T, on: any[]): T;
export function useCallback<T extends (...values: any[]) => any>(call: T, on: any[]): T;
export function useErrorBoundary(call?: (error: any) => void): [any, () => void];
export function useId(): string;
