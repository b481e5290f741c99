// The functions that draw: Preact and htm, from one file of others.

export {
  h, html, render, Component, Fragment, createRef, useState, useReducer, useEffect, useLayoutEffect, useRef, useMemo, useCallback,
  useErrorBoundary, useId,
} from '../vendor/preact.js';

/**
 * Loads a page's own style sheet, once: `loadStyle('./page.css', import.meta.url)`.
 * @param {string} name
 * @param {string} base
 */
export function loadStyle(name, base) {
  const href = new URL(name, base).href;
  if ([...document.styleSheets].some((sheet) => sheet.href === href)) return;
  const link = document.createElement('link');
  link.rel = 'stylesheet';
  link.href = href;
  document.head.append(link);
}
