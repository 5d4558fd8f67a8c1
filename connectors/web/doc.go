// Package web serves the page: HTML, CSS and ES modules in the folder page, without a build step
// and without a third party's code, and the logins of the browsers that show it. The page is a
// client of the control API like any other; the listeners of package control guard it.
//
// assets.go serves the files, login.go lets browsers in, markdown.go makes HTML of what agents and
// their models wrote. docs/web.md is for its users.
package web
